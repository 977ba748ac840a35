import assert from "node:assert/strict";
import { test } from "node:test";
import { Authors } from "../src/model/authors.js";
import { Fold } from "../src/model/fold.js";
import { agent, changed, ran, read, stale, user, version } from "./made.js";

const fresh = () => new Fold(new Authors());

test("what one command changed is one entry, with its command", () => {
  const fold = fresh();
  for (let n = 0; n < 400; n++) {
    fold.push(changed(version(n, `src/${n}.rs`, agent("claude-1"), { command: "c1", evidence: "command" })), 0);
    // Others write meanwhile.
    if (n === 200) fold.push(changed(version(5000, "notes.md", user)), 0);
  }
  fold.push(ran("c1", "claude-1", "git checkout main"), 0);
  assert.deepEqual(fold.entries.map(({ files, command }) => [files, command?.text]), [[400, "git checkout main"], [1, undefined]]);
  assert.equal(fold.entries[0]!.refs.length, 100);
});

test("an entry says that a witness has not seen all of its command's writes, and its branches", () => {
  const fold = fresh();
  fold.push(changed(version(1, "a", agent("s"), { command: "c1", evidence: "command" })), 0);
  fold.push(ran("c1", "s", "git switch x", { branchBefore: "main", branchAfter: "x", unwitnessed: "a call went on without a mark" }), 0);
  assert.equal(fold.entries[0]!.note, "main to x, not all writes seen: a call went on without a mark");
});

test("changes of one author without a pause are one entry, after a pause another", () => {
  const fold = fresh();
  fold.push(changed(version(1, "a", user), { added: 2, removed: 1 }), 0);
  fold.push(changed(version(2, "b", user), { added: 3, removed: 0 }), 0);
  fold.push(changed(version(2, "b", user)), 0);
  fold.push(changed(version(3, "c", agent("s"))), 0);
  fold.push(changed(version(40, "a", agent("s"))), 0);
  assert.deepEqual(fold.entries.map(({ who, files, added, removed }) => [who.key, files, added, removed]), [["user", 2, 5, 1], ["s", 1, 0, 0], ["s", 1, 0, 0]]);
});

test("a stale copy belongs to the change that caused it", () => {
  const fold = fresh();
  fold.push(changed(version(1, "a", user)), 0);
  fold.push(changed(version(2, "b", agent("s"))), 0);
  fold.push(stale("s", "a"), 0);
  fold.push(stale("s", "a"), 0);
  fold.push(stale("s", "unheard"), 0);
  assert.deepEqual(fold.entries.map(({ verb, staleFor }) => [verb, [...staleFor.keys()]]), [["changed", ["s"]], ["changed", []], ["stale", []]]);
});

test("a correction names the author, a confirmation says nothing", () => {
  const fold = fresh();
  fold.push(changed(version(1, "a", user)), 0);
  fold.push(changed(version(2, "a", user, { amends: "1:1" })), 0);
  assert.equal(fold.entries.length, 1);
  fold.push(changed(version(3, "a", agent("s"), { amends: "1:1" })), 0);
  assert.deepEqual(fold.entries.map(({ who, verb }) => [who.key, verb]), [["user", "changed"], ["s", "corrected"]]);
});

test("an undo and what took it back are entries of the user's", () => {
  const fold = fresh();
  const undone = { subscription: 1, clock: "1:9", type: "undone", undo: "u1", files: 2, session: "s", label: "claude-1" } as const;
  fold.push(undone, 0);
  fold.push({ ...undone, redo: true }, 0);
  assert.deepEqual(fold.entries.map(({ who, verb, note }) => [who.key, verb, note]), [["user", "undid", "claude-1 in 2 files (u1)"], ["user", "redid", "claude-1 in 2 files (u1)"]]);
});

test("reads in a row are one entry", () => {
  const fold = fresh();
  for (const path of ["a", "b", "a"]) fold.push(read("s", path), 10);
  assert.deepEqual(fold.entries.map(({ verb, files, events }) => [verb, files, events]), [["read", 2, 3]]);
});

test("the memory of a long day is bounded", () => {
  const fold = fresh();
  // Each an entry of its own, and one burst of very many files.
  for (let n = 0; n < 20_000; n++) fold.push(changed(version(n * 50, `f${n % 7000}`, n % 2 ? user : agent("s"))), 0);
  assert.equal(fold.entries.length, 500);
  for (let n = 0; n < 50_000; n++) fold.push(changed(version(n, `g${n}`, user, { command: "c9" })), 0);
  const burst = fold.entries.at(-1)!;
  assert.deepEqual([burst.files, burst.refs.length], [50_000, 100]);
});
