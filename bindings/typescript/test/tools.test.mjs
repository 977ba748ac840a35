import assert from "node:assert/strict";
import test from "node:test";

import { inWorld, touchmark } from "./world.mjs";

const { Session, Tools, restsOn } = touchmark;

test("a repeated call is answered with the earlier result while its files hold what they held", inWorld({ "a.txt": "one\n" }, async (world) => {
  const session = await Session.open("s", world.options);
  let runs = 0;
  const search = new Tools(session).wrap("search", ({ pattern }) => restsOn(`${pattern}: ${++runs}`, "a.txt"));
  const first = await search({ pattern: "x" });
  const again = await search({ pattern: "x" });
  assert.deepEqual([first.result, first.cached, first.text], ["x: 1", false, "x: 1"]);
  assert.deepEqual([again.result, again.cached], ["x: 1", true]);
  assert.match(again.text, /^\[Cached result from \d\d:\d\d:\d\d\]\n\nx: 1$/);
  world.write("a.txt", "two\n");
  assert.equal((await search({ pattern: "x" })).result, "x: 2");
  assert.equal((await search({ pattern: "y" })).result, "y: 3");
  await session.close();
}));

test("what is merely alike is served only if wanted, and nothing when switched off", inWorld({ "a.txt": "one\n" }, async (world) => {
  const session = await Session.open("s", world.options);
  let runs = 0;
  const tool = () => ++runs;
  const plain = new Tools(session).wrap("look", tool);
  await plain({ path: "a.txt", lines: 1 });
  assert.equal((await plain({ path: "a.txt", lines: 2 })).cached, false);
  const alike = new Tools(session, { similar: true }).wrap("look", tool);
  assert.equal((await alike({ path: "a.txt", lines: 3 })).cached, true);
  const off = new Tools(session, { enabled: false });
  assert.equal((await off.wrap("look", tool)({ path: "a.txt", lines: 1 })).cached, false);
  const before = runs;
  await assert.rejects(new Tools(session).wrap("fails", () => { runs++; throw new RangeError("no"); })({ id: 1 }), RangeError);
  await assert.rejects(new Tools(session).wrap("fails", () => { runs++; throw new RangeError("no"); })({ id: 1 }), RangeError);
  assert.equal(runs, before + 2, "a call that failed is not kept");
  await session.close();
}));

test("a file is told once, and in full again after a write", inWorld({ "a.txt": "one\n" }, async (world) => {
  const session = await Session.open("s", world.options);
  const tools = new Tools(session);
  assert.equal((await tools.readFile("a.txt")).text, "one\n");
  const repeat = await tools.readFile("a.txt");
  assert.deepEqual([repeat.cached, repeat.text], [true, "[File previously read: a.txt. Content unchanged since last read.]"]);
  assert.equal((await new Tools(session, { enabled: false }).readFile("a.txt")).result, "one\n");
  await tools.writeFile("a.txt", "two\n");
  assert.equal((await tools.readFile("a.txt")).result, "two\n");
  world.write("a.txt", "three\n");
  await assert.rejects(tools.writeFile("a.txt", "four\n"), (error) => error.code === "stale");
  await session.close();
}));

test("tools by their names, and without a daemon", inWorld({ "a.txt": "one\n" }, async (world) => {
  const notices = [];
  const environment = { ...world.environment, TOUCHMARK_BIN: "/nowhere/touchmark" };
  const session = await Session.open("s", { workspace: world.root, environment, onNotice: (notice) => notices.push(notice) });
  const tools = new Tools(session);
  const { double, upper } = tools.wrapAll({ double: ({ n }) => n * 2, upper: ({ s }) => s.toUpperCase() });
  assert.equal((await double({ n: 2 })).result, 4);
  assert.equal((await double({ n: 2 })).cached, false);
  assert.equal((await upper({ s: "a" })).result, "A");
  assert.equal((await tools.readFile("a.txt")).text, "one\n");
  assert.equal(notices.length, 1);
}));
