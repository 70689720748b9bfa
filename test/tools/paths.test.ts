import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join, normalize, relative, resolve } from "node:path";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { FileRoots, staysInWorkspace } from "../../src/tools/paths.ts";
import { verifies } from "../support/verifies.ts";
import { temporaryFolder, temporaryHome } from "./workbench.ts";

const reading = { follow: true, create: false };
const writing = { follow: true, create: true };

/** Where the roots put a path: the real place, or why not. */
async function placeOf(roots: FileRoots, path: string, workspace: string, how = reading): Promise<string> {
  const located = await roots.locate(path, workspace, how);
  if (located.kind === "refused") return "refused";
  await using folder = located.folder;
  return join(folder.path, located.name);
}

const workspaceOnly = new FileRoots({ roots: ["workspace"], hidden: [] });

const segment = fc.constantFrom("a", "b", "..", ".", "", "link", "up", "A", "...", "~", "proc", "x y", "ü");
const anyPath = fc
  .tuple(fc.constantFrom("", "/", "//", "./", "../"), fc.array(segment, { maxLength: 6 }))
  .map(([start, segments]) => start + segments.join("/"));

verifies(["W28"], "whatever the path and whatever the links, nothing outside is located", async () => {
  const { home, workspace } = await temporaryHome();
  await mkdir(join(workspace, "a", "b"), { recursive: true });
  await symlink("a", join(workspace, "link"));
  await symlink("../..", join(workspace, "a", "up"));
  await symlink(home, join(workspace, "up"));
  await fc.assert(
    fc.asyncProperty(anyPath, fc.boolean(), async (path, follow) => {
      const found = await placeOf(workspaceOnly, path, workspace, { follow, create: false }).catch(
        () => "refused",
      );
      expect(found === "refused" || found.startsWith(`${workspace}/`)).toBe(true);
    }),
    { numRuns: 300 },
  );
});

verifies(["W28"], "writing creates folders inside and nowhere else", async () => {
  const { home, workspace } = await temporaryHome();
  await symlink(home, join(workspace, "up"));
  await mkdir(join(workspace, "a"));
  await symlink("a", join(workspace, "link"));
  const before = await readdir(home);
  await fc.assert(
    fc.asyncProperty(anyPath, async (path) => {
      const found = await placeOf(workspaceOnly, path, workspace, writing).catch(() => "refused");
      expect(found === "refused" || found.startsWith(`${workspace}/`)).toBe(true);
    }),
    { numRuns: 200 },
  );
  expect(await readdir(home)).toEqual(before);
});

test("a path that stays in the workspace is exactly one that resolves below it", () => {
  fc.assert(
    fc.property(anyPath, (path) => {
      const below = relative("/w", resolve("/w", path));
      const climbs = below === ".." || below.startsWith("../");
      expect(staysInWorkspace(path)).toBe(!path.startsWith("/") && !climbs);
    }),
  );
  expect(staysInWorkspace(normalize("..a/b"))).toBe(true);
});

verifies(["W28"], "links are judged by where they lead", async () => {
  const { workspace } = await temporaryHome();
  const elsewhere = await temporaryFolder();
  await writeFile(join(elsewhere, "secret"), "s");
  await writeFile(join(workspace, "own"), "o");
  await symlink(join(elsewhere, "secret"), join(workspace, "out"));
  await symlink(elsewhere, join(workspace, "folder"));
  await symlink("own", join(workspace, "in"));
  await symlink("nowhere", join(workspace, "dangling"));
  await symlink("circle", join(workspace, "circle"));
  const place = (path: string, how = reading) => placeOf(workspaceOnly, path, workspace, how);
  expect(await place("in")).toBe(join(workspace, "own"));
  expect(await place("out")).toBe("refused");
  expect(await place("folder/secret")).toBe("refused");
  expect(await place("folder/new/file", writing)).toBe("refused");
  expect(await place("dangling", writing)).toBe("refused");
  expect(await place("dangling/file", writing).catch(() => "refused")).toBe("refused");
  await expect(place("circle")).rejects.toMatchObject({ code: "ELOOP" });
  // The link itself is meant when it is to be deleted.
  expect(await place("out", { follow: false, create: false })).toBe(join(workspace, "out"));
  expect(await readdir(elsewhere)).toEqual(["secret"]);
});

verifies(["W28"], "kernel state, NUL bytes, over-long paths and the root itself are refused", async () => {
  const everything = new FileRoots({ roots: ["/"], hidden: [] });
  const { workspace } = await temporaryHome();
  for (const path of ["/proc/self/environ", "/sys/kernel/notes", "/dev/null", "/dev/fd/0", "a\0b", ""]) {
    expect(await placeOf(everything, path, workspace)).toBe("refused");
  }
  expect(await placeOf(everything, "/a".repeat(3000), workspace)).toBe("refused");
  for (const path of [".", "a/..", workspace])
    expect(await placeOf(workspaceOnly, path, workspace)).toBe("refused");
});

verifies(["W28"], "the daemon's home is hidden in every root, its own workspace is not", async () => {
  const { home, workspace } = await temporaryHome();
  await writeFile(join(home, "token"), "t");
  await mkdir(join(home, "agents", "other"));
  const roots = new FileRoots({ roots: ["workspace", "/"], hidden: [home] });
  const place = (path: string) => placeOf(roots, path, workspace);
  expect(await place(join(home, "token"))).toBe("refused");
  expect(await place("../../token")).toBe("refused");
  expect(await place("../other/SOUL.md")).toBe("refused");
  expect(await place("SOUL.md")).toBe(join(workspace, "SOUL.md"));
  expect(await place(join(workspace, "SOUL.md"))).toBe(join(workspace, "SOUL.md"));
  expect(await place("/etc/hostname")).toBe("/etc/hostname");
});

verifies(["W28"], "a relative path reaches the workspace alone, though other roots are open", async () => {
  const { workspace } = await temporaryHome();
  const other = await temporaryFolder();
  await symlink(other, join(workspace, "other"));
  const both = new FileRoots({ roots: ["workspace", other], hidden: [] });
  expect(await placeOf(both, "other/file", workspace)).toBe("refused");
  expect(await placeOf(both, join(other, "file"), workspace)).toBe(join(other, "file"));
  const closed = new FileRoots({ roots: [other], hidden: [] });
  expect(await placeOf(closed, "file", workspace)).toBe("refused");
});

test("a root that is itself a link is a root", async () => {
  const real = await temporaryFolder();
  const { home, workspace } = await temporaryHome();
  const alias = join(home, "alias");
  await symlink(real, alias);
  const roots = new FileRoots({ roots: [alias], hidden: [] });
  expect(await placeOf(roots, join(alias, "file"), workspace)).toBe(join(real, "file"));
  expect(await placeOf(roots, join(real, "file"), workspace)).toBe(join(real, "file"));
});

verifies(["W28"], "a folder that is swapped for a link after the check leads nowhere else", async () => {
  const { workspace } = await temporaryHome();
  const elsewhere = await temporaryFolder();
  await writeFile(join(elsewhere, "file"), "outside");
  await mkdir(join(workspace, "folder"));
  await writeFile(join(workspace, "folder", "file"), "inside");
  const located = await workspaceOnly.locate("folder/file", workspace, reading);
  if (located.kind === "refused") throw new Error(located.message);
  await using folder = located.folder;
  await rename(join(workspace, "folder"), join(workspace, "moved"));
  await symlink(elsewhere, join(workspace, "folder"));
  expect(await readFile(join(workspace, "folder", "file"), "utf8")).toBe("outside");
  expect(await readFile(folder.at("file"), "utf8")).toBe("inside");
});

verifies(["W28"], "a link that comes and goes is never followed outside", async () => {
  const { workspace } = await temporaryHome();
  const elsewhere = await temporaryFolder();
  const door = join(workspace, "door");
  const stop = { now: false };
  const swapping = (async () => {
    while (!stop.now) {
      await symlink(elsewhere, door).catch(() => {}); // a folder may stand there
      await rm(door, { recursive: true, force: true }).catch(() => {}); // it may be filled meanwhile
      await mkdir(door).catch(() => {});
      await rm(door, { recursive: true, force: true }).catch(() => {});
    }
  })();
  for (let round = 0; round < 150; round++) {
    const found = await placeOf(workspaceOnly, "door/a/b", workspace, writing).catch(() => "refused");
    expect(found === "refused" || found.startsWith(`${workspace}/`)).toBe(true);
  }
  stop.now = true;
  await swapping;
  expect(await readdir(elsewhere)).toEqual([]);
});
