import assert from "node:assert/strict";
import test from "node:test";

import { inWorld, touchmark } from "./world.mjs";

const { Feed, Session } = touchmark;

async function until(feed, matches) {
  const passed = [];
  for (;;) {
    const next = await feed.next();
    passed.push(next);
    if (matches(next)) return passed;
  }
}

const version = (path) => (next) => next.kind === "event" && next.event.type === "version" && next.event.version.path === path;

test("a feed outlives its daemon and misses nothing", inWorld({ "a.txt": "one\n", "b.txt": "one\n" }, async (world) => {
  const session = await Session.open("s", world.options);
  await session.read("a.txt");
  await session.read("b.txt");
  const feed = await Feed.open({ ...world.options, kinds: ["version", "stale"] });
  world.write("a.txt", "two\n");
  const first = await until(feed, version("a.txt"));
  assert.equal(first.at(-1).event.version.author.kind, "user");
  await world.stop();
  world.write("b.txt", "two\n");
  // The session's next request starts another daemon, which finds the change
  // itself.
  assert.equal((await session.status(["b.txt"]))[0].state, "stale");
  const rest = await until(feed, version("b.txt"));
  assert.ok(rest.some(({ kind }) => kind === "reconnected"), JSON.stringify(rest));
  assert.ok(!rest.some(({ kind }) => kind === "missed"));
  feed.close();
  assert.equal(await feed.next(), undefined);
  await session.close();
}));

test("a feed without a daemon ends at the end of its patience", inWorld({}, async (world) => {
  const feed = await Feed.open({ ...world.options, patience: 100 });
  await world.stop();
  await assert.rejects(feed.next(), (error) => error.code === "noDaemon");
}));
