import { expect, test } from "vitest";
import { DaemonWorld, type Json } from "../support/daemon-world.ts";

/**
 * Several conversations at once, killed again and again at moments that nobody chose: after so many model calls,
 * by a seeded draw. In the end every message that was acknowledged is in its history once, in its place, with
 * one outcome, and no effect happened twice. Each failure is told with its seed.
 */
const seeds = process.env["BEAMCLAW_TEST_ALL"] === "1" ? [1, 2, 3, 4] : [1];
const rounds = 4;
const sessions = ["ada", "ben", "cy", "dora", "eve"];

/** Park and Miller's generator: the same numbers everywhere. Yields whole numbers from 1 to `most`. */
function draws(seed: number): (most: number) => number {
  let state = seed * 7919;
  return (most) => {
    state = (state * 48_271) % 2_147_483_647;
    return 1 + (state % most);
  };
}

const scriptOf = (world: DaemonWorld, name: string): string =>
  `${world.outside.post(`/${name}`)}\n!think further\n${world.outside.post(`/${name}-again`)}\n!say gap=1 the answer to ${name}`;

/** Says something; notes the run once the daemon has acknowledged it. */
async function tell(
  world: DaemonWorld,
  session: string,
  name: string,
  told: Map<string, string>,
): Promise<void> {
  try {
    const response = await world.post(session, scriptOf(world, name), { body: { stream: true } });
    const run = response.headers.get("x-run-id");
    if (response.status === 200 && run !== null) told.set(name, run);
    await response.text();
  } catch {
    return; // the daemon was killed under it
  }
}

async function afterModelCalls(world: DaemonWorld, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 1) await world.model.nextRequest();
}

/** All runs of the world, ended. */
async function settled(world: DaemonWorld): Promise<ReadonlyMap<string, Json>> {
  const ended = new Map<string, Json>();
  for (const { id } of await world.list("/v1/runs?limit=200")) {
    ended.set(String(id), await world.reached(String(id), "completed", "failed"));
  }
  return ended;
}

/** What a history must be: each message of the user in the order of the rounds, its calls answered, its answer. */
function checkHistory(history: readonly string[], session: string): readonly string[] {
  const roles = history.map((entry) => entry.split(":", 1)[0]);
  const names = history.flatMap((entry) => /!say gap=1 the answer to (\S+)/.exec(entry)?.[1] ?? []);
  const turn = ["user", "assistant", "tool", "assistant", "tool", "assistant"];
  expect({ session, roles }).toEqual({ session, roles: names.flatMap(() => turn) });
  expect(names).toEqual(names.toSorted((a, b) => a.localeCompare(b)));
  expect(new Set(names).size).toBe(names.length);
  return names;
}

for (const seed of seeds) {
  test(`killed at random, seed ${seed}: nothing lost, nothing twice`, async () => {
    await using world = await DaemonWorld.open({ config: { autonomy: "full" } });
    const draw = draws(seed);
    const told = new Map<string, string>();
    for (let round = 0; round < rounds; round += 1) {
      const kill = afterModelCalls(world, draw(sessions.length * 3));
      const talk = sessions.map((session) => tell(world, session, `${session}-${round}`, told));
      await Promise.race([kill, Promise.all(talk)]);
      await world.crash();
      await Promise.all(talk);
    }
    const runs = await settled(world);
    expect([...runs.values()].filter(({ state }) => state !== "completed")).toEqual([]);
    for (const run of told.values()) expect(runs.has(run)).toBe(true);
    const heard = new Set<string>();
    for (const session of sessions) {
      const seqs: number[] = [];
      for (const name of checkHistory(await world.history(session), session)) heard.add(name);
      for (const [id, run] of runs) {
        if (run["session_id"] !== session) continue;
        const events = await world.events(id);
        seqs.push(...events.map(({ seq }) => Number(seq)));
        expect(events.filter(({ type }) => type === "run.completed")).toHaveLength(1);
      }
      expect(seqs.toSorted((a, b) => a - b)).toEqual(seqs.map((_, index) => index + 1));
    }
    expect([...told.keys()].filter((name) => !heard.has(name))).toEqual([]);
    expect(heard.size).toBeGreaterThan(sessions.length);
    expect(new Set(world.outside.visits).size).toBe(world.outside.visits.length);
    expect(world.model.requests.filter(({ problem }) => problem !== null)).toEqual([]);
  });
}
