// Tests the plug-in as `touchmark hook install opencode` copies it, in a host
// that calls it as opencode does.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { answering, inOwnWorld, standIn, touchmark } from "./world.mjs";

const copied = mkdtempSync(join(tmpdir(), "tmoc"));
after(() => rmSync(copied, { recursive: true, force: true }));

/** Loads a copy of the plug-in's file, outside of the package. */
async function load() {
  const file = join(copied, "touchmark.mjs");
  copyFileSync(fileURLToPath(new URL("../opencode/touchmark.js", import.meta.url)), file);
  return import(pathToFileURL(file));
}

const plugin = await load();

/** opencode, as a plug-in sees it. */
class Host {
  // The long deadline keeps a busy machine from changing the result. Only tests
  // of the deadline set a short one.
  static async start(directory, options = { withinMs: 10_000 }) {
    const host = new Host();
    // opencode calls every function that the file exports.
    host.plugins = await Promise.all(Object.values(plugin).map((make) => make({ directory, worktree: directory }, options)));
    return host;
  }

  calls = 0;

  async hook(name, ...given) {
    for (const hooks of this.plugins) await hooks[name]?.(...given);
  }

  /** Runs a tool. An error that it throws is what the model gets. */
  async tool(tool, args, run, sessionID = "ses_1") {
    const call = { tool, sessionID, callID: `call_${++this.calls}` };
    let output;
    try {
      await this.hook("tool.execute.before", call, { args });
      const ran = await run();
      // The result of an MCP server is passed on unchanged.
      output = Array.isArray(ran?.content) ? ran : { title: tool, output: ran, metadata: {} };
    } catch (error) {
      const part = { type: "tool", sessionID, callID: call.callID, tool, state: { status: "error", input: args, error: error.message } };
      await this.event("message.part.updated", { part });
      throw error;
    }
    await this.hook("tool.execute.after", { ...call, args }, output);
    return output.content ?? output.output;
  }

  async prompt(text, sessionID = "ses_1") {
    const output = {
      message: { id: "msg_1", sessionID, role: "user" },
      parts: [{ id: "prt_1", sessionID, messageID: "msg_1", type: "text", text }],
    };
    await this.hook("chat.message", { sessionID, agent: "build", model: { providerID: "p", modelID: "m" } }, output);
    return output.parts;
  }

  event(type, properties) {
    return this.hook("event", { event: { type, properties } });
  }

  end() {
    return this.hook("dispose");
  }
}

test("every hook tells the daemon what it is about, in the agent's words", inOwnWorld({ "a.txt": "one\n" }, async (world) => {
  const server = await standIn(world, answering(() => undefined));
  const host = await Host.start(world.root);
  assert.equal(await host.tool("read", { filePath: world.path("a.txt") }, () => "one"), "one");
  assert.equal((await host.prompt("look at @a.txt")).length, 1);
  await assert.rejects(host.tool("edit", { filePath: "a.txt", oldString: "x", newString: "y" }, () => { throw new Error("no match"); }), /no match/);
  await host.event("session.created", { info: { id: "ses_2", parentID: "ses_1" } });
  await host.event("session.compacted", { sessionID: "ses_1" });
  await host.event("session.idle", { sessionID: "ses_1" });
  await host.event("file.watcher.updated", { file: "a.txt" });
  await host.event("session.deleted", { info: { id: "ses_1" } });
  const heard = server.heard.map(({ method, params }) => {
    assert.equal(method, "hook/event");
    assert.equal(params.input.cwd, world.root);
    const { cwd, ...rest } = params.input;
    return rest;
  });
  assert.deepEqual(heard, [
    { phase: "before", tool: "read", sessionID: "ses_1", callID: "call_1", args: { filePath: world.path("a.txt") } },
    { phase: "after", tool: "read", sessionID: "ses_1", callID: "call_1", args: { filePath: world.path("a.txt") }, metadata: {}, output: "one" },
    { phase: "prompt", sessionID: "ses_1", messageID: "msg_1", agent: "build", model: "m", provider: "p", prompt: "look at @a.txt" },
    { phase: "before", tool: "edit", sessionID: "ses_1", callID: "call_2", args: { filePath: "a.txt", oldString: "x", newString: "y" } },
    { phase: "failed", tool: "edit", sessionID: "ses_1", callID: "call_2", args: { filePath: "a.txt", oldString: "x", newString: "y" } },
    { phase: "session.created", sessionID: "ses_2", parentID: "ses_1" },
    { phase: "session.compacted", sessionID: "ses_1" },
    { phase: "session.idle", sessionID: "ses_1" },
    { phase: "session.deleted", sessionID: "ses_1" },
  ]);
  await host.end();
  await server.close();
}));

test("a refusal is thrown, a notice appended, and acknowledged once delivered", inOwnWorld({ "a.txt": "one\n" }, async (world) => {
  const said = { before: { stdout: { deny: "a.txt was changed" }, ack: "6" }, after: { stdout: { append: "b.txt was changed" }, ack: "7" }, prompt: { stdout: { append: "c.txt was changed" }, ack: "8" } };
  const server = await standIn(world, answering(({ phase, tool }) => (tool === "bash" && phase === "before" ? undefined : said[phase])));
  const host = await Host.start(world.root);
  let ran = false;
  await assert.rejects(host.tool("write", { filePath: "a.txt", content: "" }, () => (ran = true)), { message: "a.txt was changed" });
  assert.equal(ran, false);
  assert.equal(await host.tool("bash", { command: "true" }, () => "done"), "done\n\nb.txt was changed");
  const [typed, added] = await host.prompt("go on");
  assert.equal(typed.text, "go on");
  assert.deepEqual([added.text, added.synthetic, added.messageID], ["c.txt was changed", true, "msg_1"]);
  assert.notEqual(added.id, typed.id);
  await host.event("session.idle", { sessionID: "ses_1" });
  const acks = server.heard.filter(({ method }) => method === "hook/ack").map(({ params }) => params.ack);
  assert.deepEqual(acks, ["6", "7", "8"]);
  await host.end();
  await server.close();
}));

test("a daemon that is slow, wrong or not there holds nobody up", inOwnWorld({ "a.txt": "one\n" }, async (world) => {
  process.env.TOUCHMARK_BIN = "/nowhere/touchmark";
  const host = await Host.start(world.root, {});
  const read = () => host.tool("read", { filePath: "a.txt" }, () => "one");
  assert.equal(await read(), "one", "no daemon");
  for (const answer of [() => undefined, () => ({ error: { code: -32601, message: "no such method" } }), () => ({ result: { stdout: "oops" } }), () => ({ result: {} }), (_, socket) => void socket.destroy()]) {
    const server = await standIn(world, answer);
    assert.equal(await read(), "one", String(answer));
    assert.ok(server.heard.every(({ params }) => params.withinMs <= 150));
    await server.close();
  }
  await host.end();
}));

test("a file's own workspace is told, what is outside of all passes in silence", inOwnWorld({ "a.txt": "" }, async (world) => {
  const server = await standIn(world, answering(() => undefined));
  const host = await Host.start(world.root);
  await host.tool("write", { filePath: join(world.base, "outside.txt"), content: "" }, () => "");
  assert.equal(server.heard.length, 0);
  await host.tool("write", { filePath: "not/there/yet.txt", content: "" }, () => "");
  assert.equal(server.heard.length, 2);
  mkdirSync(world.path("inner/.git"), { recursive: true });
  await host.tool("write", { filePath: "inner/b.txt", content: "" }, () => "");
  assert.equal(server.heard.length, 2, "another workspace's");
  await host.end();
  await server.close();
  // The inner workspace's daemon is started in the background.
  const inner = touchmark.Workspace.at(world.path("inner"), world.environment);
  const pause = () => new Promise((resolve) => setTimeout(resolve, 25));
  for (let tries = 0; tries < 400 && !(await inner.isRunning()); tries++) await pause();
  // Each of the tool's two events starts a daemon. The second one may start
  // after the first has exited.
  for (let quiet = 0; quiet < 40; quiet++) {
    if (await inner.isRunning()) {
      try {
        const client = await touchmark.connect({ workspace: inner, environment: world.environment, start: false });
        await client.shutdown();
        client.close();
      } catch (error) {
        // The daemon that an earlier round has ended was still listening.
        assert.match(error.code, /^(connectionClosed|noDaemon)$/);
      }
      quiet = 0;
    }
    await pause();
  }
}));

const schema = JSON.parse(readFileSync(new URL("../../../docs/protocol.schema.json", import.meta.url), "utf8"));
test("with a daemon: a stale file is not written, and a change is told once", { skip: !("hook/event" in schema.methods) && "this daemon has no hooks" }, inOwnWorld({ "a.txt": "one\n" }, async (world) => {
  // The daemon is started before the agent, so that it receives the first hook.
  (await touchmark.connect(world.options)).close();
  const host = await Host.start(world.root);
  const file = { filePath: world.path("a.txt") };
  const read = () => host.tool("read", file, () => readFileSync(world.path("a.txt"), "utf8"));
  const write = (content) => host.tool("write", { ...file, content }, () => (writeFileSync(world.path("a.txt"), content), "written"));
  await assert.rejects(write("unread\n"), /a\.txt/);
  await read();
  await write("mine\n");
  world.write("a.txt", "theirs\n");
  await assert.rejects(write("again\n"), /a\.txt/);
  assert.equal(readFileSync(world.path("a.txt"), "utf8"), "theirs\n");
  // What a refusal has shown is not reported again, and the next try is
  // allowed.
  assert.equal((await host.prompt("go on")).length, 1);
  await write("again\n");
  world.write("a.txt", "theirs too\n");
  const parts = await host.prompt("look");
  assert.ok(parts.length === 2 && /a\.txt/.test(parts[1].text), JSON.stringify(parts));
  assert.equal((await host.prompt("and on")).length, 1);
  await read();
  await write("again\n");
  const client = await touchmark.connect({ ...world.options, start: false });
  const { versions: [newest] } = await client.fileHistory({ path: "a.txt" });
  assert.equal(newest.author.kind, "agent");
  client.close();
  await host.end();
}));
