// Starting a daemon where none runs.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Connection, pause } from "./connection.js";
import { TouchmarkError } from "./errors.js";
import { isOurs } from "./places.js";
import type { Workspace } from "./workspace.js";

/** How long a daemon may take to come up, in milliseconds. */
export const START_DEADLINE = 10_000;

/** What a daemon says when another holds the lock (SEC-1). */
const ANOTHER_RUNS = 1;

/** How long another starter's daemon may take to listen after ours gave way to it. */
const WINNER_DEADLINE = 10_000;

/** How much of a failed daemon's words is told. */
const MAX_SAID = 16 * 1024;

/**
 * Connects to a workspace's daemon, if one runs and its socket is this user's. A
 * socket that is named outright is the same for every directory, so its daemon
 * is asked which workspace it serves (SEC-8).
 */
export async function dialWorkspace(workspace: Workspace, withinMs: number): Promise<Connection> {
  for (const socket of workspace.sockets()) {
    if (!isOurs(socket, workspace.environment)) continue;
    try {
      const connection = await Connection.open(socket, withinMs);
      if (socket === workspace.environment["TOUCHMARK_SOCKET"]) await askWhose(connection, workspace, withinMs);
      return connection;
    } catch (error) {
      // Left by a daemon that was killed.
      if (!(error instanceof TouchmarkError) || error.code !== "noDaemon") throw error;
    }
  }
  throw new TouchmarkError("noDaemon", `no daemon answers at ${workspace.socket}`);
}

async function askWhose(connection: Connection, workspace: Workspace, withinMs: number): Promise<void> {
  try {
    const status = (await connection.call("status", {}, withinMs)) as { workspace: string };
    workspace.checkServed(status.workspace);
  } catch (error) {
    connection.close();
    throw error;
  }
}

/**
 * Starts a daemon and waits until it takes a connection. Of two starters at the
 * same moment one daemon stays, by its lock, and both connect to it.
 */
export async function startDaemon(workspace: Workspace, withinMs = START_DEADLINE): Promise<Connection> {
  const starting = new Starting(workspace);
  let until = performance.now() + withinMs;
  let gaveWay = false;
  try {
    // Ever longer pauses: a daemon is up within milliseconds, and one that is
    // not should not be looked at all the time.
    for (let wait = 1; ; wait = Math.min(wait * 2, 50)) {
      try {
        return await dialWorkspace(workspace, Math.max(1, until - performance.now()));
      } catch (error) {
        if (!(error instanceof TouchmarkError) || !error.isDisconnected) throw error;
      }
      if (starting.ended !== undefined && !gaveWay) {
        if (starting.ended !== ANOTHER_RUNS) throw starting.failed();
        gaveWay = true;
        until = Math.min(until, performance.now() + WINNER_DEADLINE);
      }
      if (performance.now() >= until) throw starting.failed();
      await pause(wait);
    }
  } finally {
    starting.leave();
  }
}

/** A daemon that is coming up. */
class Starting {
  /** Its exit code, or the signal, or why it could not be started at all. */
  ended: number | string | undefined;
  readonly #binary: string;
  readonly #child: ChildProcess;
  /** What it writes before it has a log: a file without a name, since a pipe would break when this process ends. */
  readonly #said: number;
  readonly #root: number | undefined;

  constructor(workspace: Workspace) {
    const environment = workspace.environment;
    this.#binary = environment["TOUCHMARK_BIN"] || "touchmark";
    this.#said = nameless();
    let root = workspace.root;
    if (!Buffer.from(root).equals(workspace.rootBytes)) {
      // A program's arguments are text here: a name that is not goes by its descriptor.
      this.#root = openSync(workspace.rootBytes, "r");
      root = `/proc/${process.pid}/fd/${this.#root}`;
    }
    // Not detached: a group's leader could not become the session leader that
    // the daemon makes itself (LIFE-1).
    this.#child = spawn(this.#binary, ["daemon", "--on-demand", "--workspace", root], {
      cwd: "/",
      env: environment,
      stdio: ["ignore", "ignore", this.#said],
    });
    this.#child.once("error", (error) => (this.ended = `${error.message} (set TOUCHMARK_BIN to the binary)`));
    this.#child.once("exit", (code, signal) => (this.ended = code ?? signal ?? "no exit code"));
    this.#child.unref();
  }

  failed(): TouchmarkError {
    const said = Buffer.alloc(Math.min(MAX_SAID, fstatSync(this.#said).size));
    const length = readSync(this.#said, said, 0, said.length, 0);
    const lines = said.toString("utf8", 0, length).split("\n").filter((line) => line.trim() !== "");
    const how = this.ended === undefined ? "it does not answer" : `${typeof this.ended === "number" ? "exit code " : ""}${this.ended}`;
    const reason = lines.length > 0 ? `${lines.slice(-3).join("; ")} (${how})` : `${this.#binary}: ${how}`;
    return new TouchmarkError("startFailed", `the daemon did not start: ${reason}`);
  }

  leave(): void {
    closeSync(this.#said);
    if (this.#root !== undefined) closeSync(this.#root);
  }
}

/** An open file of this user's alone, without a name. */
function nameless(): number {
  const directory = mkdtempSync(join(tmpdir(), "touchmark-start-"));
  try {
    return openSync(join(directory, "said"), "w+", 0o600);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
