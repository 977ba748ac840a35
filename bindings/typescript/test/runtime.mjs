// Runs the plug-in's file in the runtime that runs this script.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";

import { World, standIn } from "./world.mjs";

const world = new World();
mkdirSync(world.path(".git"));
Object.assign(process.env, world.environment);
const said = { before: { deny: "changed" }, after: { append: "more" } };
const server = await standIn(world, ({ method, params }) => {
  const stdout = JSON.stringify(said[params.input?.phase] ?? {});
  return { result: method === "hook/event" ? { stdout, stderr: "", exit: 0, ack: "1" } : {} };
});
const plugin = await import("../opencode/touchmark.js");
assert.deepEqual(Object.keys(plugin), ["TouchmarkPlugin"]);
const hooks = await plugin.TouchmarkPlugin({ directory: world.root }, { withinMs: 10_000 });
const call = { tool: "write", sessionID: "ses_1", callID: "call_1" };
await assert.rejects(hooks["tool.execute.before"](call, { args: { filePath: "a.txt" } }), /changed/);
const output = { title: "", output: "done", metadata: {} };
await hooks["tool.execute.after"]({ ...call, args: { filePath: "a.txt" } }, output);
assert.equal(output.output, "done\n\nmore");
await hooks.dispose();
await server.close();
await world.end();
console.log("ok");
