// Starts a daemon if none runs.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Connection, pause } from "./connection.js";
import { TouchmarkError } from "./errors.js";
import { isOurs } from "./places.js";
import type { Workspace } from "./workspace.js";

/** How long a daemon may take to start, in milliseconds. */
export const START_DEADLINE = 10_000;

/**
 * The exit code of a daemon that finds the lock taken by another daemon
 * (SEC-1).
 */
const ANOTHER_RUNS = 1;

/**
 * How long the daemon of another starter may take to listen, after this
 * process's daemon has found the lock taken, in milliseconds.
 */
const WINNER_DEADLINE = 10_000;

/** The most bytes of a failed daemon's output that are reported. */
const MAX_SAID = 16 * 1024;

/**
 * Connects to a workspace's daemon, if one runs and its socket is this user's.
 * If `TOUCHMARK_SOCKET` names the socket, the daemon is asked which workspace
 * it serves, since the variable is the same for every directory (SEC-8).
 */
export async function dialWorkspace(workspace: Workspace, withinMs: number): Promise<Connection> {
  for (const socket of workspace.sockets()) {
    if (!isOurs(socket, workspace.environment)) continue;
    try {
      const connection = await Connection.open(socket, withinMs);
      if (socket === workspace.environment["TOUCHMARK_SOCKET"]) await askWhose(connection, workspace, withinMs);
      return connection;
    } catch (error) {
      // This socket may be left from a daemon that was killed.
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
 * Starts a daemon and waits until it accepts a connection. If two processes
 * start one at the same moment, the lock lets one daemon run, and both
 * processes connect to it.
 */
export async function startDaemon(workspace: Workspace, withinMs = START_DEADLINE): Promise<Connection> {
  const starting = new Starting(workspace);
  let until = performance.now() + withinMs;
  let gaveWay = false;
  try {
    // The pauses double each time. A daemon usually answers within
    // milliseconds; one that does not should not be polled too often.
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

/** A daemon that was started and does not answer yet. */
class Starting {
  /**
   * The daemon's exit code, the signal that ended it, or why it could not be
   * started.
   */
  ended: number | string | undefined;
  readonly #binary: string;
  readonly #child: ChildProcess;
  /**
   * What the daemon prints before it opens its log, in an unnamed file. A pipe
   * would break when this process exits.
   */
  readonly #said: number;
  readonly #root: number | undefined;

  constructor(workspace: Workspace) {
    const environment = workspace.environment;
    this.#binary = environment["TOUCHMARK_BIN"] || "touchmark";
    this.#said = nameless();
    let root = workspace.root;
    if (!Buffer.from(root).equals(workspace.rootBytes)) {
      // Node passes arguments as text, so a name that is not UTF-8 is passed by
      // its descriptor.
      this.#root = openSync(workspace.rootBytes, "r");
      root = `/proc/${process.pid}/fd/${this.#root}`;
    }
    // The child is not detached: the leader of a group could not become the
    // leader of a session, which the daemon does (LIFE-1).
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

/** Returns an open, unnamed file that only this user can read. */
function nameless(): number {
  const directory = mkdtempSync(join(tmpdir(), "touchmark-start-"));
  try {
    return openSync(join(directory, "said"), "w+", 0o600);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
