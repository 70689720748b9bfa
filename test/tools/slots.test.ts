import { expect, test } from "vitest";
import { Slots } from "../../src/tools/slots.ts";
import { never } from "./workbench.ts";

test("places are handed on in order, and who leaves the line is not waited for", async () => {
  const slots = new Slots(1);
  expect(await slots.take(never())).toBe(true);
  const order: string[] = [];
  const impatient = new AbortController();
  const first = slots.take(never()).then(() => order.push("first"));
  const second = slots.take(impatient.signal);
  const third = slots.take(never()).then(() => order.push("third"));
  impatient.abort();
  expect(await second).toBe(false);
  slots.release();
  await first;
  slots.release();
  await third;
  expect(order).toEqual(["first", "third"]);
  slots.release();
  expect(await slots.take(never())).toBe(true);
  expect(await slots.take(AbortSignal.abort())).toBe(false);
});
