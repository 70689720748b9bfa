export const openApiDocument = (version: string): unknown => ({
  openapi: "3.1.0",
  info: { title: "beamclaw", version },
  paths: {},
});
