import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Installation } from "../../src/app/installation.ts";

const { root } = new Installation();
const dockerfile = readFileSync(join(root, "Dockerfile"), "utf8");

/** One entry per instruction, continuation lines and comments folded away. */
const instructions = dockerfile
  .split("\n")
  .filter((line) => !/^\s*#/.test(line))
  .join("\n")
  .replaceAll("\\\n", " ")
  .split("\n")
  .map((line) => line.trim().replaceAll(/\s+/g, " "))
  .filter((line) => line !== "");

const stages = instructions.filter((line) => line.startsWith("FROM "));
const final = instructions.slice(instructions.lastIndexOf(stages.at(-1) ?? ""));

test("base images are pinned to a whole version of the Node that we require", () => {
  expect(stages).toHaveLength(2);
  for (const stage of stages) expect(stage).toMatch(/^FROM node:24\.\d+\.\d+-[a-z-]+( AS [a-z]+)?$/);
});

test("the image runs as an ordinary user who owns the data, and reports its health", () => {
  const user = final.findIndex((line) => line.startsWith("USER "));
  expect(final[user]).not.toMatch(/root|\b0\b/);
  const commands = final.findIndex((line) => line.startsWith("ENTRYPOINT"));
  expect(commands).toBeGreaterThan(user);
  expect(final.some((line) => line.startsWith("HEALTHCHECK ") && line.includes("/health"))).toBe(true);
  expect(final.some((line) => line.startsWith("RUN ") && line.includes("-o node"))).toBe(true);
});

test("commands are argument lists, so that signals reach the daemon and not a shell", () => {
  for (const line of final.filter((text) => /^(ENTRYPOINT|CMD) /.test(text)))
    expect(line).toMatch(/ \[".*"\]$/);
});

test("no secret is built in, and nothing that could hold one is copied", () => {
  expect(dockerfile).not.toMatch(/(API_KEY|TOKEN|SECRET|PASSWORD)\s*=/i);
  expect(instructions.filter((line) => /^(ARG|ADD) /.test(line))).toEqual([]);
  const sources = instructions
    .filter((line) => line.startsWith("COPY ") && !line.includes("--from="))
    .flatMap((line) => line.split(" ").slice(1, -1));
  expect(sources).not.toContain(".");
  for (const source of sources) expect([source, existsSync(join(root, source))]).toEqual([source, true]);
  const ignored = readFileSync(join(root, ".dockerignore"), "utf8").split("\n");
  for (const source of sources) expect(ignored).toContain(`!${source}`);
  expect(ignored).toContain("*");
});
