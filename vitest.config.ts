import { defineConfig } from "vitest/config";

/** `unit` needs no process of its own; `system` starts the built daemon and outside peers. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/system/**"],
          isolate: false, // no module keeps state, so files can share what they import
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: "system",
          include: ["test/system/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
