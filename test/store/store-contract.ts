import { approvalContract } from "./contract/approvals.ts";
import { eventContract } from "./contract/events.ts";
import { idempotencyContract } from "./contract/idempotency.ts";
import { runContract } from "./contract/runs.ts";
import { sessionContract } from "./contract/sessions.ts";
import { stepContract } from "./contract/steps.ts";
import { upkeepContract } from "./contract/upkeep.ts";
import type { Open } from "./contract/open.ts";

/** What every adapter of the `Store` port has to do. `open` gives each test an empty store of its own. */
export function storeContract(open: Open): void {
  runContract(open);
  idempotencyContract(open);
  stepContract(open);
  approvalContract(open);
  sessionContract(open);
  eventContract(open);
  upkeepContract(open);
}
