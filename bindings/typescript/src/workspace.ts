// Finds the workspace of a directory, and the socket of its daemon.

import { realpathSync, statSync } from "node:fs";

import { Connection } from "./connection.js";
import { TouchmarkError } from "./errors.js";
import { type Environment, chosenSocket, isOurs, socketOf, socketsOf, trustedFile } from "./places.js";
import { marks } from "./trust.js";

/**
 * How long checking a socket may take, in milliseconds: a stopped daemon
 * accepts no connection.
 */
const LOOK = 1_000;

const SLASH = 0x2f;

/** A workspace, and the socket of its daemon. */
export class Workspace {
  /** The workspace's canonical path; lossy if it is not UTF-8. */
  readonly root: string;
  /** The bytes of the workspace's canonical path. */
  readonly rootBytes: Buffer;
  /**
   * The socket that a daemon of this environment would listen on: see
   * `sockets`.
   */
  readonly socket: string;
  /** The environment variables that determine paths. */
  readonly environment: Environment;

  private constructor(root: Buffer, environment: Environment) {
    this.rootBytes = root;
    this.root = root.toString("utf8");
    this.environment = environment;
    this.socket = chosenSocket(root, environment);
  }

  /** Returns the workspace whose root is this directory. */
  static at(directory: string | Uint8Array, environment: Environment = process.env): Workspace {
    return new Workspace(canonical(directory), environment);
  }

  /**
   * Returns the workspace of a directory: the innermost directory, going up
   * from `directory`, that has a running daemon, a `.touchmark.toml` or a
   * `.git`; else `directory` itself. The innermost one is used so that a daemon
   * in the home directory does not serve the projects below it. Files that
   * other users could have put there are ignored (SEC-6).
   */
  static async find(directory: string | Uint8Array = ".", environment: Environment = process.env): Promise<Workspace> {
    const start = canonical(directory);
    return (await Workspace.around(start, environment)) ?? new Workspace(start, environment);
  }

  /**
   * Returns the workspace of a directory as `find` does, but undefined if no
   * directory has a daemon or a mark.
   */
  static async around(directory: string | Uint8Array, environment: Environment = process.env): Promise<Workspace | undefined> {
    for (let at: Buffer | undefined = canonical(directory); at !== undefined; at = above(at)) {
      // `TOUCHMARK_SOCKET` is the same for every directory, so it is not used
      // here.
      const unnamed = { ...environment, TOUCHMARK_SOCKET: undefined };
      if (isMarked(at, environment) || (await listensAtAny(socketsOf(at, socketOf(at, unnamed), unnamed), unnamed))) {
        return new Workspace(at, environment);
      }
    }
    return undefined;
  }

  /**
   * Returns the sockets that the daemon may listen on, in the order to try
   * them. The lock file names the socket of a daemon that was started with
   * another runtime directory (SEC-1).
   */
  sockets(): string[] {
    return socketsOf(this.rootBytes, this.socket, this.environment);
  }

  /** Throws if the daemon serves another workspace (SEC-8). */
  checkServed(served: string): void {
    if (served === this.root) return;
    const both = `its daemon serves ${served}, not ${this.root}`;
    throw new TouchmarkError("place", `${this.socket}: ${both}: unset TOUCHMARK_SOCKET`);
  }

  /** Returns whether a process listens on one of the sockets. */
  isRunning(): Promise<boolean> {
    return listensAtAny(this.sockets(), this.environment);
  }
}

async function listensAtAny(sockets: string[], environment: Environment): Promise<boolean> {
  for (const socket of sockets) if (await listens(socket, environment)) return true;
  return false;
}

/** Returns whether a process of this user listens on a socket. */
async function listens(socket: string, environment: Environment): Promise<boolean> {
  try {
    // The file is checked first, since most directories have no socket.
    if (!isOurs(socket, environment)) return false;
    (await Connection.open(socket, LOOK)).close();
    return true;
  } catch (error) {
    // A daemon that is stopped or busy exists nevertheless.
    return error instanceof TouchmarkError && error.code === "deadline";
  }
}

function canonical(directory: string | Uint8Array): Buffer {
  const named = typeof directory === "string" ? directory : Buffer.from(directory);
  let root: Buffer;
  try {
    root = realpathSync.native(named, { encoding: "buffer" });
    if (statSync(root).isDirectory()) return root;
  } catch (error) {
    throw new TouchmarkError("place", `${String(named)}: ${(error as Error).message}`, { cause: error });
  }
  throw new TouchmarkError("place", `${String(root)}: a workspace is a directory`);
}

function above(directory: Buffer): Buffer | undefined {
  if (directory.length <= 1) return undefined;
  const slash = directory.lastIndexOf(SLASH);
  return directory.subarray(0, Math.max(slash, 1));
}

function isMarked(directory: Buffer, environment: Environment): boolean {
  const list = trustedFile(environment);
  return [".touchmark.toml", ".git"].some((name) => marks(name, directory, environment, list));
}
