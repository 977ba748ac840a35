// Tests the plug-ins for pi and Cline as `touchmark hook install` copies them,
// in hosts that call them as the agents do.

import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { answering, inOwnWorld, standIn } from "./world.mjs";

const copied = mkdtempSync(join(tmpdir(), "tmpl"));
after(() => rmSync(copied, { recursive: true, force: true }));

/** Loads a copy of a plug-in's file, outside of the package. */
async function load(name) {
  const file = join(copied, `${name}.mjs`);
  copyFileSync(fileURLToPath(new URL(`../${name}/touchmark.js`, import.meta.url)), file);
  return (await import(pathToFileURL(file))).default;
}

const pi = await load("pi");
const cline = await load("cline");

const SAID = {
  before: { stdout: { deny: "a.txt was changed" }, ack: "1" },
  after: { stdout: { append: "b.txt was changed" }, ack: "2" },
  prompt: { stdout: { append: "c.txt was changed" }, ack: "3" },
};
const denies = ({ phase, tool }) => (phase === "before" && tool !== "edit" && tool !== "editor" ? undefined : SAID[phase]);

/** Returns what a stand-in has heard of hooks, without what all events have. */
function heard(server, agent, root) {
  const hooks = server.heard.filter(({ method }) => method === "hook/event");
  return hooks.map(({ params }) => {
    assert.equal(params.agent, agent);
    const { cwd, ...rest } = params.input;
    assert.equal(cwd, root);
    return rest;
  });
}

const acks = (server) => server.heard.filter(({ method }) => method === "hook/ack").map(({ params }) => params.ack);

test("pi's events, denials and notices", inOwnWorld({ "a.txt": "one\n" }, async (world) => {
  const server = await standIn(world, answering(denies));
  const handlers = {};
  pi({ on: (name, handler) => (handlers[name] = handler) }, { withinMs: 10_000 });
  const entries = [];
  const context = { cwd: world.root, model: { id: "m", provider: "p" }, sessionManager: { getSessionId: () => "s", getEntries: () => entries } };
  const say = (name, event = {}) => handlers[name]({ type: name, ...event }, context);
  await say("session_start", { reason: "startup" });
  const told = await say("before_agent_start", { prompt: "go" });
  assert.equal(told.message.content, "c.txt was changed");
  const read = { toolName: "read", toolCallId: "1", input: { path: "a.txt" } };
  assert.equal(await say("tool_call", read), undefined);
  const content = [{ type: "text", text: "one\n" }];
  const result = await say("tool_result", { ...read, content, isError: false });
  assert.deepEqual(result.content.map(({ text }) => text), ["one\n", "b.txt was changed"]);
  const edit = { toolName: "edit", toolCallId: "2", input: { path: "a.txt", edits: [] } };
  assert.deepEqual(await say("tool_call", edit), { block: true, reason: "a.txt was changed" });
  assert.equal(await say("tool_result", { ...edit, content, isError: true }), undefined);
  await say("session_compact");
  await say("agent_end");
  await say("session_shutdown", { reason: "quit" });
  entries.push({ type: "message" });
  await say("session_start", { reason: "startup" });
  const all = { sessionID: "s" };
  assert.deepEqual(heard(server, "pi", world.root), [
    { ...all, phase: "session.created", source: "startup" },
    { ...all, phase: "prompt", prompt: "go", model: "m", provider: "p" },
    { ...all, phase: "before", tool: "read", callID: "1", args: read.input },
    { ...all, phase: "after", output: "one\n", tool: "read", callID: "1", args: read.input },
    { ...all, phase: "before", tool: "edit", callID: "2", args: edit.input },
    { ...all, phase: "failed", error: "one\n", tool: "edit", callID: "2", args: edit.input },
    { ...all, phase: "session.compacted" },
    { ...all, phase: "session.idle" },
    { ...all, phase: "session.deleted" },
    { ...all, phase: "session.created", source: "resume" },
  ]);
  assert.deepEqual(acks(server), ["3", "2", "1"]);
  await say("session_shutdown", { reason: "reload" });
  await server.close();
}));

test("Cline's events, denials and notices", inOwnWorld({ "a.txt": "one\n" }, async (world) => {
  const server = await standIn(world, answering(denies));
  process.env.TOUCHMARK_HOOK_MS = "10000";
  cline.setup({}, { session: { sessionId: "s" }, workspaceInfo: { rootPath: world.root } });
  const { beforeRun, afterRun, beforeTool, afterTool } = cline.hooks;
  const snapshot = { agentId: "a1", messages: [{ role: "user", content: [{ type: "text", text: "go" }] }] };
  assert.deepEqual(await beforeRun({ snapshot }), { appendContext: "c.txt was changed" });
  const call = (name, input, toolCallId) => ({ snapshot, tool: { name }, toolCall: { toolCallId }, input });
  const read = call("read_files", { files: [{ path: "a.txt" }, { path: "b.txt", start_line: 2 }] }, "1");
  assert.equal(await beforeTool(read), undefined);
  const result = { output: [{ result: "1 | one", success: true }, { error: "none", success: false }] };
  assert.deepEqual(await afterTool({ ...read, result }), { appendContext: "b.txt was changed" });
  const edit = call("editor", { path: "a.txt", old_text: "one", new_text: "two" }, "2");
  assert.deepEqual(await beforeTool(edit), { skip: true, reason: "a.txt was changed" });
  assert.equal(await afterTool({ ...edit, result: { output: { error: "no" }, isError: true } }), undefined);
  const create = call("editor", { path: "n.txt", new_text: "x" }, "3");
  assert.equal(await beforeTool(create), undefined);
  const run = call("run_commands", { commands: ["true", "false"] }, "4");
  run.snapshot = { agentId: "a2", parentAgentId: "a1" };
  assert.equal(await beforeTool(run), undefined);
  await afterRun({ snapshot });
  const all = { sessionID: "s" };
  const [first, second] = read.input.files;
  const [prompt, ...rest] = heard(server, "cline", world.root);
  assert.deepEqual(prompt, { ...all, phase: "prompt", prompt: "go" });
  assert.deepEqual(rest.map(({ output, error, ...event }) => event), [
    { ...all, phase: "before", tool: "read_files", callID: "1/0", args: first },
    { ...all, phase: "before", tool: "read_files", callID: "1/1", args: second },
    { ...all, phase: "after", tool: "read_files", callID: "1/0", args: first },
    { ...all, phase: "failed", tool: "read_files", callID: "1/1", args: second },
    { ...all, phase: "before", tool: "editor", callID: "2", args: edit.input },
    { ...all, phase: "failed", tool: "editor", callID: "2", args: edit.input },
    { ...all, phase: "before", tool: "create", callID: "3", args: create.input },
    { sessionID: "s/a2", parentID: "s", phase: "before", tool: "run_commands", callID: "4", args: { command: "true\nfalse" } },
    { ...all, phase: "session.idle" },
  ]);
  assert.equal(rest[2].output, "one");
  await server.close();
}));
