# Builds with everything, ships with what it takes to run. No secret is ever part of the image: keys come as
# environment variables or mounted files when a container starts.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Not `npm ci`: it refuses a lock file that lacks other platforms' optional packages.
RUN npm install --omit=optional
COPY tsconfig.json ./
COPY bin ./bin
COPY config ./config
COPY scripts ./scripts
COPY src ./src
RUN node scripts/build.ts \
  && npm prune --omit=dev --omit=optional \
  # Fills the compile cache, which nobody may write to later.
  && BEAMCLAW_HOME=/tmp/warm node bin/beamclaw config check \
  && rm -rf /tmp/warm

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production \
  BEAMCLAW_HOME=/data \
  BEAMCLAW_HOST=0.0.0.0
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/bin ./bin
COPY --from=build /app/config ./config
COPY --from=build /app/dist ./dist
RUN ln -s /app/bin/beamclaw /usr/local/bin/beamclaw \
  && install -d -o node -g node -m 0700 /data
USER node
VOLUME /data
EXPOSE 18800
HEALTHCHECK --interval=30s --timeout=5s --start-period=15s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.BEAMCLAW_PORT || 18800}/health`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["beamclaw"]
CMD ["start", "--foreground"]
