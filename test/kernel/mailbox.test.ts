import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Mailbox } from "../../src/kernel/mailbox.ts";

test("never exceeds its bound, refuses what does not fit and delivers the rest in order", async () => {
  const operations = fc.array(fc.constantFrom("push" as const, "push" as const, "take" as const), {
    maxLength: 400,
  });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 150 }), operations, async (capacity, script) => {
      const mailbox = new Mailbox<number>(capacity);
      const reader = mailbox[Symbol.asyncIterator]();
      const queue: number[] = [];
      let sent = 0;
      const push = (): void => {
        sent += 1;
        const fits = queue.length < capacity;
        expect(mailbox.push(sent)).toBe(fits);
        if (fits) queue.push(sent);
      };
      const take = async (): Promise<void> => {
        if (queue.length === 0) return; // would wait for ever
        expect(await reader.next()).toEqual({ done: false, value: queue.shift() });
      };
      for (const operation of script) {
        await (operation === "push" ? push() : take());
        expect(mailbox.size).toBe(queue.length);
        expect(mailbox.size).toBeLessThanOrEqual(capacity);
      }
      expect(mailbox.drain()).toEqual(queue);
    }),
    { numRuns: 100 },
  );
});

test("a waiting consumer gets the next item, a closed mailbox delivers what waits and then ends", async () => {
  const mailbox = new Mailbox<string>(10);
  const got: string[] = [];
  const consumer = (async () => {
    for await (const item of mailbox) got.push(item);
    return "ended";
  })();
  await Promise.resolve();
  mailbox.push("first");
  mailbox.push("second");
  mailbox.close();
  expect(mailbox.push("too late")).toBe(false);
  expect(await consumer).toBe("ended");
  expect(got).toEqual(["first", "second"]);
});

test("closing wakes a consumer that waits for nothing", async () => {
  const mailbox = new Mailbox<string>(1);
  const next = mailbox[Symbol.asyncIterator]().next();
  mailbox.close();
  expect(await next).toEqual({ done: true, value: undefined });
});

test("undefined is an item like any other", async () => {
  const mailbox = new Mailbox<undefined>(2);
  mailbox.push(undefined);
  expect(mailbox.size).toBe(1);
  expect(await mailbox[Symbol.asyncIterator]().next()).toEqual({ done: false, value: undefined });
});

test("a second consumer is refused while the first one reads, and welcome after it left", async () => {
  const mailbox = new Mailbox<number>(2);
  mailbox.push(1);
  mailbox.push(2);
  for await (const item of mailbox) {
    expect(item).toBe(1);
    expect(() => mailbox[Symbol.asyncIterator]()).toThrow("exactly one consumer");
    break;
  }
  expect(await mailbox[Symbol.asyncIterator]().next()).toMatchObject({ value: 2 });
});

test("a capacity below one is refused", () => {
  expect(() => new Mailbox(0)).toThrow(RangeError);
  expect(() => new Mailbox(NaN)).toThrow(RangeError);
});
