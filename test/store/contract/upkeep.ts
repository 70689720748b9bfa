import { describe, expect, test } from "vitest";
import { asId, type SessionId } from "../../../src/domain/ids.ts";
import type { TokenRecord } from "../../../src/store/ports.ts";
import { acceptRequest, accepted, agent, finishRequest, historyOf, start } from "../requests.ts";
import type { Open } from "./open.ts";

const token: TokenRecord = {
  name: "web",
  hash: "ab".repeat(32),
  scopes: ["chat", "tools"],
  agent: null,
  createdAt: start,
  expiresAt: null,
  revokedAt: null,
};

export function upkeepContract(open: Open): void {
  describe("upkeep", () => {
    test("a name has one live token at a time", async () => {
      const store = await open();
      expect(await store.tokens.create(token)).toBe(true);
      expect(await store.tokens.create({ ...token, hash: "x" })).toBe(false);
      expect(await store.tokens.revoke("web", start + 1)).toBe(true);
      expect(await store.tokens.revoke("web", start + 2)).toBe(false);
      const next = { ...token, hash: "y", agent, expiresAt: start + 10 };
      expect(await store.tokens.create(next)).toBe(true);
      expect(await store.tokens.create({ ...token, hash: "z", createdAt: start + 9 })).toBe(false);
      expect(await store.tokens.create({ ...token, hash: "z", createdAt: start + 10 })).toBe(true);
      expect(await store.tokens.list()).toEqual([
        { ...token, revokedAt: start + 1 },
        { ...next, revokedAt: start + 10 },
        { ...token, hash: "z", createdAt: start + 10 },
      ]);
    });

    test("the same bytes are kept once; an id that is no hash finds nothing", async () => {
      const store = await open();
      const bytes = Buffer.from("hello");
      const id = await store.attachments.put(bytes, "text/plain");
      expect(await store.attachments.put(bytes, "text/plain")).toBe(id);
      expect(id).toBe("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
      expect(await store.attachments.get(id)).toMatchObject({ mime: "text/plain" });
      expect(await store.attachments.get(asId("../../beamclaw.db"))).toBeNull();
      expect(await store.attachments.get(asId("0".repeat(64)))).toBeNull();
    });

    test("purge removes old ended stateless runs and old keys, a bounded number at a time", async () => {
      const store = await open();
      const one = (name: string, at: number) =>
        accepted(store, { ephemeral: true, sessionId: asId<SessionId>(name), at });
      const ended = [await one("a", start), await one("b", start), await one("c", start)];
      for (const run of ended) await store.runs.finish(finishRequest(run));
      const running = await one("d", start);
      const young = await one("e", start);
      await store.runs.finish(finishRequest(young, { at: start + 9_000 }));
      const kept = await accepted(store);
      await store.runs.finish(finishRequest(kept));
      expect(await store.runs.purge(start + 5_000, 2)).toBe(2);
      expect(await store.runs.purge(start + 5_000, 2)).toBe(1);
      expect(await store.runs.purge(start + 5_000, 2)).toBe(0);
      for (const run of ended) {
        expect(await store.runs.get(run.id)).toBeNull();
        expect(await store.events.after(run.sessionId, 0, { limit: 9 })).toEqual([]);
      }
      expect(await store.runs.get(running.id)).not.toBeNull();
      expect(await store.runs.get(young.id)).not.toBeNull();
      expect(await historyOf(store)).toHaveLength(2);
    });

    test("purge forgets old keys", async () => {
      const store = await open();
      const idempotency = { token: "t", route: "r", key: "k", bodyHash: "h" };
      await accepted(store, { idempotency });
      expect(await store.runs.purge(start + 1, 10)).toBe(1);
      expect(await store.runs.accept(acceptRequest({ idempotency }))).toMatchObject({ kind: "queued" });
    });

    test("the probe commits", async () => {
      const store = await open();
      await expect(store.probe(start)).resolves.toBeUndefined();
    });

    test("a closed store refuses every write", async () => {
      const store = await open();
      await store.close();
      await expect(store.probe(start)).rejects.toMatchObject({ code: "store_unavailable" });
      await expect(store.runs.accept(acceptRequest())).rejects.toMatchObject({ code: "store_unavailable" });
      await expect(store.runs.openSessions()).rejects.toMatchObject({ code: "store_unavailable" });
      await expect(store.backup("/nowhere/x.db")).rejects.toMatchObject({ code: "store_unavailable" });
    });
  });
}
