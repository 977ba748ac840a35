import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "../src/model/fold.js";
import { deeds, witnessed } from "../src/model/now.js";

test("a session does what it did last, or runs a command", () => {
  const verbs = { read: "read", changed: "changed", opened: "opened a session" } as Record<Entry["verb"], string>;
  const entry = (key: string, verb: Entry["verb"], refs: string[], time: number) => ({ who: { key }, verb, refs, files: refs.length, time }) as unknown as Entry;
  const entries = [entry("a", "read", ["x"], 1), entry("a", "changed", ["y", "z"], 2), entry("b", "changed", ["y"], 3), entry("a", "opened", [], 4), entry("c", "read", ["x"], 5), entry("a", "stale", ["x"], 6), entry("b", "corrected", ["z"], 6)];
  const running = [{ command: "c1", session: "3", label: "cargo test\nexit", begun: "1:1", begunAt: 7, versions: 0 }, { command: "c2", session: "3", label: "ls", begun: "1:2", begunAt: 8, endedAt: 9, versions: 0 }];
  const found = deeds(entries, running, verbs, (session) => (session === "3" ? "c" : ""));
  assert.deepEqual([...found], [
    ["a", { verb: "changed", ref: undefined, files: 2, time: 2 }],
    ["b", { verb: "changed", ref: "z", files: 1, time: 6 }],
    ["c", { verb: "runs", files: 0, command: "cargo test", time: 7 }],
  ]);
});

test("what a witness has seen of a session's commands is said with the right number", () => {
  const said = ([commands, incomplete]: [number, number]) => witnessed({ session: "s", since: 1, commands, incomplete });
  assert.deepEqual(([[1, 0], [1, 1], [5, 0], [1200, 2]] as [number, number][]).map(said), [
    "1 command, seen whole", "1 command, not seen whole", "5 commands, all seen whole", "1,200 commands, 2 not seen whole",
  ]);
});
