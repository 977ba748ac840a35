import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";

import { inWorld, standIn, touchmark } from "./world.mjs";

const dist = process.env.TOUCHMARK_DIST;
const { dialWorkspace } = await import(dist ? pathToFileURL(join(dist, "start.js")) : "../dist/start.js");
const { Session, TouchmarkError, Workspace, connect, hashOf, nameIn } = touchmark;

const code = (expected) => (error) => {
  assert.ok(error instanceof TouchmarkError, String(error));
  assert.equal(error.code, expected, error.message);
  assert.ok(error.hint, "a hint");
  return true;
};

const hello = { result: { server: { name: "touchmark", version: "0" }, protocol: 2, workspace: "/", clock: "1:1", capabilities: [] } };

test("a session reads, is told what others changed, and writes what it has seen", inWorld({ "a.txt": "one\n" }, async (world) => {
  const session = await Session.open("s", world.options);
  assert.equal(session.isTracked, true);
  assert.equal(session.opened.resumed, false);
  assert.equal((await session.readText("a.txt")).text, "one\n");
  assert.equal((await session.readText("a.txt")).verdict, "repeat");
  world.write("a.txt", "two\n");
  assert.deepEqual((await session.status(["a.txt"])).map((file) => file.state), ["stale"]);
  const [change] = await session.changed();
  assert.deepEqual([change.path, change.changedBy], ["a.txt", [{ kind: "user" }]]);
  assert.deepEqual(await session.changed(), []);
  await assert.rejects(session.write("a.txt", "three\n"), code("stale"));
  assert.equal((await session.read("a.txt")).known.verdict, "changed");
  await session.write("a.txt", "three\n");
  const [newest] = (await session.call("file/history", { path: "a.txt" })).versions;
  assert.deepEqual([newest.author.kind, newest.author.session, newest.hash], ["agent", "s", hashOf("three\n")]);
  await session.close();
}));

test("an edit marks, writes guarded and commits", inWorld({ "a.txt": "one\n" }, async (world) => {
  const session = await Session.open("s", world.options);
  await assert.rejects(session.edit("a.txt", () => assert.fail("not begun")), code("notRead"));
  await session.read("a.txt");
  const done = await session.edit("a.txt", async (file) => {
    const open = await session.status(["a.txt"]);
    assert.equal(open[0].state, "fresh");
    const other = await Session.open("other", world.options);
    await other.read("a.txt");
    await assert.rejects(other.edit("a.txt"), code("busy"));
    await other.close();
    await file.write((await file.text()).toUpperCase());
    await file.write(`${await file.text()}two\n`);
    return 7;
  });
  assert.equal(done.value, 7);
  assert.equal(done.file.outcome, "applied");
  assert.equal(readFileSync(world.path("a.txt"), "utf8"), "ONE\ntwo\n");
  const [newest] = (await session.call("file/history", { path: "a.txt" })).versions;
  assert.deepEqual([newest.author.session, newest.evidence], ["s", "declared"]);
  await session.close();
}));

test("an edit that throws is aborted, and the next change is the user's", inWorld({ "a.txt": "one\n" }, async (world) => {
  const session = await Session.open("s", world.options);
  await session.read("a.txt");
  await assert.rejects(session.edit("a.txt", () => { throw new RangeError("no"); }), RangeError);
  world.write("a.txt", "two\n");
  const [newest] = (await session.call("file/history", { path: "a.txt" })).versions;
  assert.equal(newest.author.kind, "user");
  const held = await session.edit("a.txt", { force: true });
  await held[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
  assert.equal((await session.call("status", {})).openEdits, 0);
  await session.close();
}));

test("what somebody saves in the middle of an edit is not overwritten", inWorld({ "a.txt": "one\n" }, async (world) => {
  const session = await Session.open("s", world.options);
  await session.read("a.txt");
  const edit = session.edit("a.txt", async (file) => {
    world.write("a.txt", "saved\n");
    await file.write("mine\n");
  });
  await assert.rejects(edit, (error) => ["conflict", "stale"].includes(error.code));
  assert.equal(readFileSync(world.path("a.txt"), "utf8"), "saved\n");
  await session.close();
}));

test("a file written by other means in an edit is the session's", inWorld({ "a.txt": "one\n" }, async (world) => {
  const session = await Session.open("s", world.options);
  await session.read("a.txt");
  const done = await session.edit("a.txt", () => writeFileSync(world.path("a.txt"), "by a tool\n"));
  assert.equal(done.file.outcome, "applied");
  const [newest] = (await session.call("file/history", { path: "a.txt" })).versions;
  assert.deepEqual([newest.author.session, newest.evidence], ["s", "marked"]);
  await session.close();
}));

test("names and contents that are not UTF-8", inWorld({}, async (world) => {
  const name = Buffer.from([0x66, 0xff, 0x20, 0x61]);
  const session = await Session.open("s", world.options);
  await session.write(name, Buffer.from([1, 0xfe, 2]));
  assert.deepEqual(readFileSync(session.target(name)), Buffer.from([1, 0xfe, 2]));
  const { files: [listed] } = await session.fileStatus();
  assert.deepEqual(nameIn(listed, world.workspace.rootBytes), name);
  assert.equal((await session.status([name]))[0].state, "fresh");
  assert.equal((await session.readText(name)).encoding, "base64");
  const done = await session.edit(name, async (file) => file.write(Buffer.concat([await file.bytes(), Buffer.from("x")])));
  assert.equal(done.file.outcome, "applied");
  await session.close();
}));

test("a workspace whose name is not UTF-8 has its daemon started", inWorld({}, async (world) => {
  const root = Buffer.concat([Buffer.from(`${world.base}/w`), Buffer.from([0xff])]);
  mkdirSync(root);
  const workspace = Workspace.at(root, world.environment);
  const client = await connect({ workspace, environment: world.environment });
  assert.ok((await client.status()).pid > 0);
  await client.shutdown();
  client.close();
}));

test("the innermost workspace is found, and its socket named as the command names it", inWorld({}, async (world) => {
  const deep = world.path("a/b");
  mkdirSync(deep, { recursive: true });
  const find = async (from) => (await Workspace.find(from, world.environment)).root;
  assert.equal(await find(deep), deep, "no mark: itself");
  mkdirSync(world.path(".git"));
  assert.equal(await find(deep), world.root);
  writeFileSync(world.path("a/.touchmark.toml"), "");
  assert.equal(await find(deep), world.path("a"));
  symlinkSync(world.root, join(world.base, "link"));
  for (const XDG_RUNTIME_DIR of [world.environment.XDG_RUNTIME_DIR, undefined, "relative"]) {
    const environment = { ...world.environment, XDG_RUNTIME_DIR };
    if (XDG_RUNTIME_DIR === undefined) delete environment.XDG_RUNTIME_DIR;
    const printed = execFileSync(environment.TOUCHMARK_BIN, ["--workspace", world.root, "socket"], { env: environment, encoding: "utf8" });
    assert.equal(Workspace.at(join(world.base, "link"), environment).socket, printed.trimEnd());
  }
}));

test("a running daemon marks its workspace", inWorld({ "a/b/c": "" }, async (world) => {
  const client = await connect({ workspace: world.path("a"), environment: world.environment });
  assert.equal((await Workspace.find(world.path("a/b"), world.environment)).root, world.path("a"));
  await client.shutdown();
  client.close();
}));

test("a daemon of another runtime directory is found by its lock", inWorld({ "a/b": "" }, async (world) => {
  const client = await connect({ workspace: world.root, environment: world.environment });
  const environment = { ...world.environment };
  delete environment.XDG_RUNTIME_DIR;
  const workspace = await Workspace.find(world.path("a"), environment);
  assert.equal(workspace.root, world.root, "it marks its workspace");
  assert.deepEqual(workspace.sockets(), [world.workspace.socket, workspace.socket]);
  const other = await connect({ workspace: world.root, environment, start: false });
  assert.equal((await other.status()).pid, (await client.status()).pid);
  other.close();
  await client.shutdown();
  client.close();
  assert.equal(workspace.sockets().at(-1), workspace.socket);
}));

test("TOUCHMARK_SOCKET names the socket outright, and one too long is refused", inWorld({}, async (world) => {
  const socket = join(world.base, "s.sock");
  assert.equal(Workspace.at(world.root, { ...world.environment, TOUCHMARK_SOCKET: socket }).socket, socket);
  const long = join(world.base, "x".repeat(120));
  assert.throws(() => Workspace.at(world.root, { ...world.environment, TOUCHMARK_SOCKET: long }), code("place"));
}));

test("another workspace's daemon is refused with both paths (SEC-8)", inWorld({ "a.txt": "one\n" }, async (world) => {
  (await connect(world.options)).close();
  const other = join(world.base, "other");
  mkdirSync(join(other, ".git"), { recursive: true });
  const environment = { ...world.environment, TOUCHMARK_SOCKET: world.workspace.socket };
  const meant = Workspace.at(other, environment);
  for (const ask of [() => connect({ workspace: meant, environment }), () => dialWorkspace(meant, 5_000)]) {
    await assert.rejects(ask, (error) => {
      assert.ok(code("place")(error) && error.message.includes(other) && error.message.includes(world.root), error.message);
      return true;
    });
  }
  (await connect({ workspace: Workspace.at(world.root, environment), environment })).close();
}));

test("a directory in which others may write is not trusted (SEC-8)", inWorld({}, async (world) => {
  const server = await standIn(world, () => hello);
  chmodSync(join(world.base, "run/touchmark"), 0o777);
  await assert.rejects(connect({ ...world.options, start: false }), code("place"));
  chmodSync(join(world.base, "run/touchmark"), 0o700);
  (await connect({ ...world.options, start: false })).close();
  await server.close();
}));

test("a daemon that does not answer is given up at the deadline, which it is told (LIFE-4)", inWorld({}, async (world) => {
  const server = await standIn(world, ({ method }) => (method === "initialize" ? hello : undefined));
  const client = await connect({ ...world.options, start: false });
  await assert.rejects(client.ping({}, { withinMs: 40 }), code("deadline"));
  assert.equal(server.heard.at(-1).params.withinMs, 40);
  client.close();
  await assert.rejects(client.ping(), code("connectionClosed"));
  await server.close();
}));

test("what is no answer ends the connection", inWorld({}, async (world) => {
  const server = await standIn(world, ({ method }, socket) => (method === "initialize" ? hello : void socket.write("who are you?\n")));
  const client = await connect({ ...world.options, start: false });
  await assert.rejects(client.ping(), code("protocol"));
  await server.close();
}));

test("answers find their callers whatever their order, and in pieces", inWorld({}, async (world) => {
  const held = [];
  const server = await standIn(world, (message, socket) => {
    if (message.method === "initialize") return hello;
    held.push(message);
    if (held.length < 3) return undefined;
    const text = held.reverse().map(({ id, params }) => `${JSON.stringify({ id, result: { text: `${params.text}é` } })}\n`).join("");
    for (const byte of Buffer.from(text)) socket.write(Buffer.from([byte]));
    return undefined;
  });
  const client = await connect({ ...world.options, start: false });
  const answers = await Promise.all(["a", "b", "c"].map((text) => client.quotesNormalize({ text })));
  assert.deepEqual(answers.map(({ text }) => text), ["aé", "bé", "cé"]);
  client.close();
  await server.close();
}));

test("a daemon that cannot be started says why", inWorld({}, async (world) => {
  writeFileSync(world.path(".touchmark.toml"), "no such key = 1\n");
  const options = { workspace: world.root };
  await assert.rejects(connect({ ...options, environment: { ...world.environment, TOUCHMARK_BIN: "/nowhere/touchmark" } }), code("startFailed"));
  await assert.rejects(connect({ ...options, environment: { ...world.environment, TOUCHMARK_BIN: "/bin/false" }, startWithinMs: 50 }), code("startFailed"));
}));

test("two starters at the same moment share one daemon", inWorld({}, async (world) => {
  const clients = await Promise.all([1, 2, 3].map(() => connect(world.options)));
  const pids = new Set(await Promise.all(clients.map(async (client) => (await client.status()).pid)));
  assert.equal(pids.size, 1);
  for (const client of clients) client.close();
}));

test("a session goes on with another daemon", inWorld({ "a.txt": "one\n" }, async (world) => {
  const session = await Session.open("s", world.options);
  await session.read("a.txt");
  await world.stop();
  world.write("a.txt", "two\n");
  const [change] = await session.changed();
  assert.deepEqual([change.path, change.changedBy], ["a.txt", [{ kind: "unknown" }]]);
  await session.close();
}));

test("without a daemon it goes on without tracking, and says so once", inWorld({ "a.txt": "one\n" }, async (world) => {
  const notices = [];
  const environment = { ...world.environment, TOUCHMARK_BIN: "/nowhere/touchmark" };
  const session = await Session.open("s", { workspace: world.root, environment, onNotice: (notice) => notices.push(notice) });
  assert.equal(session.isTracked, false);
  assert.equal((await session.read("a.txt")).text, "one\n");
  assert.equal((await session.readText("a.txt")).text, "one\n");
  assert.deepEqual(await session.changed(), []);
  const done = await session.edit("a.txt", async (file) => file.write(`${await file.text()}two\n`));
  assert.equal(done.file, undefined);
  await session.write("b.txt", "new\n");
  assert.equal(readFileSync(world.path("a.txt"), "utf8"), "one\ntwo\n");
  assert.equal(readFileSync(world.path("b.txt"), "utf8"), "new\n");
  await assert.rejects(session.read("none"), code("notFound"));
  await assert.rejects(session.edit("a.txt", async (file) => {
    await file.text();
    world.write("a.txt", "saved\n");
    await file.write("mine\n");
  }), code("conflict"));
  await assert.rejects(session.checkpointCreate(), code("startFailed"));
  assert.equal(notices.length, 1, notices.join("\n"));
  assert.match(notices[0], /without tracking/);
  await session.close();
}));

test("an idle connection keeps no process alive", inWorld({}, async (world) => {
  const index = process.env.TOUCHMARK_DIST ? `file://${process.env.TOUCHMARK_DIST}/index.js` : new URL("../dist/index.js", import.meta.url).href;
  const script = `import { Session } from ${JSON.stringify(index)}; const s = await Session.open("s"); await s.changed(); console.log("done");`;
  const printed = execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: world.root, env: world.environment, encoding: "utf8", timeout: 20_000 });
  assert.equal(printed, "done\n");
}));
