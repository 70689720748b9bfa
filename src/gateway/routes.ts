import { approvalRoutes } from "./approval-routes.ts";
import { chatRoutes } from "./chat-completions.ts";
import type { Route, RouteDeps } from "./route.ts";
import { runRoutes } from "./run-routes.ts";
import { sessionRoutes } from "./session-routes.ts";
import { systemRoutes } from "./system-routes.ts";

/** Everything the gateway serves; `openapi.ts` describes each, and a test compares the two. */
export const allRoutes = (deps: RouteDeps): readonly Route[] => [
  ...systemRoutes(deps),
  ...chatRoutes(deps),
  ...sessionRoutes(deps),
  ...runRoutes(deps),
  ...approvalRoutes(deps),
];
