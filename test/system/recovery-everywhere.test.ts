import { expect, test } from "vitest";
import { DaemonWorld, type Json } from "../support/daemon-world.ts";

/**
 * Killed at every point of a turn that can be seen from outside: its model calls, its effects, its answer. The
 * turn has two tools with effects, one after the other. Killed again at the next point after the restart.
 */
const points = ["model 1", "effect 1", "model 2", "effect 2", "model 3", "answer"] as const;
type Point = (typeof points)[number];

/** Two further daemons a point; the first and the last few points say most, the others run with all tests. */
const always: readonly Point[] = ["effect 1", "model 3"];
const chosen = points.filter((point) => process.env["BEAMCLAW_TEST_ALL"] === "1" || always.includes(point));

/** Resolves when the turn of this session gets to the point; `after` counts model calls made before it. */
async function reached(world: DaemonWorld, point: Point, session: string): Promise<void> {
  const [kind, n = "0"] = point.split(" ");
  if (kind === "effect") return world.outside.visited(`/hold-${session}-${n}`);
  if (kind === "model") while (stepsOf(world, session) < Number(n)) await world.model.nextRequest();
}

/** Model calls of a session: the script names it. */
const stepsOf = (world: DaemonWorld, session: string): number =>
  world.model.requests.filter(({ body }) => JSON.stringify(body["messages"]).includes(`-${session}-1`))
    .length;

const ends = (events: readonly Json[]): readonly Json[] =>
  events.filter(({ type }) => /^run\.(completed|failed|cancelled|expired)$/.test(String(type)));

for (const point of chosen) {
  test(`killed at ${point}: one outcome, no effect twice`, async () => {
    await using world = await DaemonWorld.open({ config: { autonomy: "full" } });
    const session = point.replace(" ", "-");
    // Only the effect that the kill is to hit is held open; an effect that is held never answers.
    const path = (n: number): string => `/${point === `effect ${n}` ? "hold" : "go"}-${session}-${n}`;
    const script = [
      `!think 1\n${world.outside.post(path(1))}`,
      `!think 2\n${world.outside.post(path(2))}`,
      "!say gap=5 the end of the turn",
    ].join("\n");
    const arrival = reached(world, point, session);
    const answered = world.post(session, script).then(
      async (response) => response.text().catch(() => ""),
      () => "",
    );
    await (point === "answer" ? answered : arrival);
    await world.crash();
    const [run] = await world.list(`/v1/runs?session_id=${session}`);
    const id = String(run?.["id"]);
    expect(await world.reached(id, "completed")).toMatchObject({ output: "the end of the turn" });
    expect(ends(await world.events(id))).toHaveLength(1);
    expect(world.outside.visits).toEqual([`POST ${path(1)}`, `POST ${path(2)}`]);
    expect(await world.list("/v1/runs")).toHaveLength(1);
    const roles = (await world.history(session)).map((entry) => entry.split(":", 1)[0]);
    expect(roles).toEqual(["user", "assistant", "tool", "assistant", "tool", "assistant"]);
    expect(world.model.requests.filter(({ problem }) => problem !== null)).toEqual([]);
  });
}
