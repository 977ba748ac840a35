// SEC-6, SEC-8: plays the cases of bindings/conformance/trust.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";

import { inWorld, touchmark } from "./world.mjs";

const dist = process.env.TOUCHMARK_DIST;
const trust = await import(dist ? pathToFileURL(join(dist, "trust.js")) : "../dist/trust.js");

function each(name, outcome, play) {
  const cases = JSON.parse(readFileSync(new URL(`../../conformance/trust/${name}`, import.meta.url), "utf8"));
  assert.ok(cases.length > 3);
  for (const one of cases) assert.equal(play(one), one[outcome], one.name);
}

const me = ({ uid, sudo }) => ({ uid, sudo });
const owned = ({ uid, mode }) => ({ uid, mode: parseInt(mode ?? "0", 8) });

test("whose marks are taken over", () => {
  each("marks.json", "taken", (one) => trust.takes(me(one), owned(one.directory), owned(one.file)));
});

test("which directories a list names", () => {
  each("listed.json", "listed", (one) => trust.isListed(Buffer.from(one.list), Buffer.from(one.directory)));
});

test("who may answer", () => {
  each("peers.json", "heard", (one) => trust.hears(me(one), one.peer));
});

test("which sockets are dialled", () => {
  each("sockets.json", "dialled", (one) => trust.refusal(me(one), owned(one.directory), owned(one.socket)) === undefined);
});

test("marks that others could have put there are passed over", inWorld({}, async (world) => {
  const [outer, deep] = [world.path("o"), world.path("o/i")];
  mkdirSync(deep, { recursive: true });
  mkdirSync(join(outer, ".git"));
  const found = async () => (await touchmark.Workspace.find(deep, world.environment)).root;
  assert.equal(await found(), outer);
  chmodSync(outer, 0o777);
  assert.equal(await found(), deep);
  const config = join(world.environment.HOME, ".config/touchmark");
  mkdirSync(config, { recursive: true });
  writeFileSync(join(config, "trusted"), `${outer}\n`);
  assert.equal(await found(), outer);
}));
