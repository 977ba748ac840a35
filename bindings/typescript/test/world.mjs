// A workspace with separate home and runtime directories, for one test.

import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * The compiled package. `TOUCHMARK_DIST` names it if it is not in its usual
 * place.
 */
const dist = process.env.TOUCHMARK_DIST;
export const touchmark = await import(dist ? pathToFileURL(join(dist, "index.js")) : "../dist/index.js");

export class World {
  constructor(files = {}) {
    this.base = realpathSync(mkdtempSync(join(tmpdir(), "tmjs")));
    this.root = join(this.base, "ws");
    for (const name of ["home", "run", "ws"]) mkdirSync(join(this.base, name), { mode: 0o700 });
    for (const [path, text] of Object.entries(files)) this.write(path, text);
    this.environment = {
      PATH: process.env.PATH,
      HOME: join(this.base, "home"),
      XDG_RUNTIME_DIR: join(this.base, "run"),
      TOUCHMARK_BIN: process.env.TOUCHMARK_BIN ?? "touchmark",
    };
  }

  /** The options for every connection in this world. */
  get options() {
    return { workspace: this.workspace, environment: this.environment };
  }

  get workspace() {
    return touchmark.Workspace.at(this.root, this.environment);
  }

  path(name) {
    return join(this.root, name);
  }

  /** Writes a file, as another process would. */
  write(name, content) {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), content);
  }

  /** Stops the daemon, if one runs, and waits until it has exited. */
  async stop() {
    const { workspace } = this;
    if (!(await workspace.isRunning())) return;
    try {
      const client = await touchmark.connect({ ...this.options, start: false });
      await client.shutdown().catch(() => undefined);
      client.close();
    } catch (error) {
      // The daemon is already shutting down.
      if (!error.isDisconnected) throw error;
    }
    while (await workspace.isRunning()) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  async end() {
    await this.stop();
    // A daemon that was stopped may still write its state, so new files may
    // appear. `rmSync` would only try its last step again, not the whole.
    await rm(this.base, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

/** Runs a test in a separate world. */
export function inWorld(files, test) {
  return async () => {
    const world = new World(files);
    try {
      await test(world);
    } finally {
      await world.end();
    }
  };
}

/**
 * Listens where a daemon would, and answers with what `answer` returns;
 * undefined sends no answer.
 */
export async function standIn(world, answer) {
  mkdirSync(join(world.base, "run/touchmark"), { recursive: true, mode: 0o700 });
  const sockets = new Set();
  const heard = [];
  const server = createServer((socket) => {
    sockets.add(socket.unref());
    let rest = "";
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop();
      for (const message of lines.map((line) => JSON.parse(line))) {
        heard.push(message);
        const body = answer(message, socket);
        if (message.method === "initialize" && body?.result) body.result.workspace = world.root;
        if (body !== undefined) socket.write(`${JSON.stringify({ jsonrpc: "2.0", id: message.id, ...body })}\n`);
      }
    });
  });
  await new Promise((resolve) => server.listen(world.workspace.socket, resolve));
  // A test that fails before it closes the server must not keep the process
  // alive.
  server.unref();
  const close = () => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  };
  return { heard, close };
}

/**
 * Runs a test in a workspace whose directories are set in this process's
 * environment.
 */
export function inOwnWorld(files, run) {
  return async () => {
    const world = new World(files);
    mkdirSync(world.path(".git"));
    const before = { ...process.env };
    Object.assign(process.env, world.environment);
    try {
      await run(world);
    } finally {
      for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
      Object.assign(process.env, before);
      await world.end();
    }
  };
}

/** Returns a stand-in's answers to hooks. */
export const answering = (said) => (message) => {
  if (message.method === "hook/ack") return { result: {} };
  const { stdout, ack } = said(message.params.input) ?? {};
  return { result: { stdout: JSON.stringify(stdout ?? {}), stderr: "", exit: 0, ack: ack ?? null } };
};
