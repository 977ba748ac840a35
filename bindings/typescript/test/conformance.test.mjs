// Plays the vectors of bindings/conformance with this client.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, renameSync, rmSync } from "node:fs";
import test from "node:test";
import { pathToFileURL } from "node:url";

import { inWorld, touchmark } from "./world.mjs";

const { TouchmarkError, connect, hashOf } = touchmark;

const HOUR = 3_600_000;
const VECTORS = new URL("../../conformance/", import.meta.url);

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

class Names {
  constructor(world) {
    this.world = world;
    this.kept = new Map();
  }

  uri(name) {
    return `${pathToFileURL(this.world.root).href}/${name}`;
  }

  /** Returns the value of a text that begins with `$` in parameters. */
  speak(text) {
    const [, word, rest] = /^\$(\w+):?(.*)$/s.exec(text);
    switch (word) {
      case "hash": return hashOf(rest);
      case "path": return rest === "" ? this.world.root : this.world.path(rest);
      case "uri": return this.uri(rest);
      default:
        assert.ok(this.kept.has(word), `nothing was kept as ${text}`);
        return this.kept.get(word);
    }
  }

  fill(value) {
    if (Array.isArray(value)) return value.map((one) => this.fill(one));
    if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.fill(one)]));
    return typeof value === "string" && value.startsWith("$") ? this.speak(value) : value;
  }

  match(actual, expected, where) {
    if (Array.isArray(expected)) {
      assert.ok(Array.isArray(actual), `${where}: ${JSON.stringify(actual)} is no array`);
      assert.equal(actual.length, expected.length, `${where}: ${JSON.stringify(actual)}`);
      expected.forEach((one, at) => this.match(actual[at], one, `${where}[${at}]`));
    } else if (isObject(expected)) {
      assert.ok(isObject(actual), `${where}: ${JSON.stringify(actual)} is no object`);
      for (const [name, one] of Object.entries(expected)) this.match(actual[name], one, `${where}.${name}`);
    } else if (typeof expected === "string" && expected.startsWith("$")) {
      this.special(actual, expected, where);
    } else {
      assert.deepEqual(actual ?? null, expected, where);
    }
  }

  special(actual, expected, where) {
    const [, word, rest] = /^\$(\w+):?(.*)$/s.exec(expected);
    switch (word) {
      case "any": return assert.notEqual(actual ?? null, null, `${where} is not there`);
      case "absent": return assert.equal(actual ?? null, null, where);
      case "time": return assert.ok(Math.abs(actual - Date.now()) < HOUR, `${where}: ${actual} is not about now`);
      case "contains": return assert.ok(String(actual).includes(rest), `${where}: ${actual} does not contain ${rest}`);
      case "keep":
        assert.notEqual(actual ?? null, null, `${where} is not there`);
        return this.kept.set(rest, actual);
      default: return assert.deepEqual(actual, this.speak(expected), where);
    }
  }
}

/** The events of a connection, in order. */
class Events {
  constructor(client) {
    this.waiting = [];
    client.listen((event) => {
      this.waiting.push(event);
      this.wake?.();
    }, (error) => {
      this.ended = error;
      this.wake?.();
    });
  }

  async next() {
    while (this.waiting.length === 0) {
      if (this.ended) throw this.ended;
      const late = setTimeout(() => this.wake?.(new Error("no such event came")), 20_000);
      const failed = await new Promise((resolve) => (this.wake = resolve));
      clearTimeout(late);
      if (failed) throw failed;
    }
    return this.waiting.shift();
  }
}

async function step(of, { client, world, names, events }, where) {
  if (of.write !== undefined) return world.write(of.write, of.base64 === undefined ? of.text : Buffer.from(of.base64, "base64"));
  if (of.delete !== undefined) return rmSync(world.path(of.delete));
  if (of.rename !== undefined) return renameSync(world.path(of.rename), world.path(of.to));
  if (of.event !== undefined) {
    for (;;) {
      const event = await events.next();
      try {
        return names.match(event, of.event, where);
      } catch (error) {
        // An event that does not match is skipped.
        if (!(error instanceof assert.AssertionError)) throw error;
      }
    }
  }
  assert.ok(of.call, `${where}: an unknown step: ${JSON.stringify(of)}`);
  const params = names.fill(of.params ?? {});
  if (of.error === undefined) {
    const result = await client.call(of.call, params);
    return "result" in of ? names.match(result, of.result, where) : undefined;
  }
  const error = await client.call(of.call, params).then((result) => assert.fail(`${where}: answered ${JSON.stringify(result)}`), (error) => error);
  assert.ok(error instanceof TouchmarkError, `${where}: ${error}`);
  if (of.number !== undefined) assert.equal(error.number, of.number, where);
  assert.deepEqual([error.code, error.hint], [error.data.code, error.data.hint]);
  return names.match(error.data, of.error, where);
}

for (const file of readdirSync(VECTORS).filter((name) => name.endsWith(".json")).sort()) {
  test(file, { concurrency: 4 }, async (family) => {
    const vectors = JSON.parse(readFileSync(new URL(file, VECTORS), "utf8"));
    await Promise.all(vectors.map((vector) => family.test(vector.name, inWorld(vector.files, async (world) => {
      const client = await connect(world.options);
      const around = { client, world, names: new Names(world), events: new Events(client) };
      for (const [at, of] of vector.steps.entries()) await step(of, around, `step ${at + 1}`);
      client.close();
    }))));
  });
}
