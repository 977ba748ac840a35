// Which workspace, and where its daemon listens.

import { realpathSync, statSync } from "node:fs";

import { Connection } from "./connection.js";
import { TouchmarkError } from "./errors.js";
import { type Environment, chosenSocket, isOurs, socketOf, socketsOf, trustedFile } from "./places.js";
import { marks } from "./trust.js";

/** How long a look at a socket may take: a daemon that is stopped takes no connection. */
const LOOK = 1_000;

const SLASH = 0x2f;

/** A workspace and where its daemon listens. */
export class Workspace {
  /** Its canonical path; lossy, where the name is not UTF-8. */
  readonly root: string;
  /** The same, byte for byte. */
  readonly rootBytes: Buffer;
  /** The socket that a daemon of this environment would listen on: see `sockets`. */
  readonly socket: string;
  /** The variables that say so. */
  readonly environment: Environment;

  private constructor(root: Buffer, environment: Environment) {
    this.rootBytes = root;
    this.root = root.toString("utf8");
    this.environment = environment;
    this.socket = chosenSocket(root, environment);
  }

  /** The workspace in that very directory. */
  static at(directory: string | Uint8Array, environment: Environment = process.env): Workspace {
    return new Workspace(canonical(directory), environment);
  }

  /**
   * The innermost workspace, going up from `directory`, that has a running
   * daemon, a `.touchmark.toml` or a `.git`; else `directory` itself. So a
   * daemon in the home directory does not swallow the projects below it. Marks
   * that others could have put there count as none (SEC-6).
   */
  static async find(directory: string | Uint8Array = ".", environment: Environment = process.env): Promise<Workspace> {
    const start = canonical(directory);
    return (await Workspace.around(start, environment)) ?? new Workspace(start, environment);
  }

  /** The same without the last resort: nothing, where nothing marks one. */
  static async around(directory: string | Uint8Array, environment: Environment = process.env): Promise<Workspace | undefined> {
    for (let at: Buffer | undefined = canonical(directory); at !== undefined; at = above(at)) {
      // TOUCHMARK_SOCKET is the same for every directory, so it marks none.
      const unnamed = { ...environment, TOUCHMARK_SOCKET: undefined };
      if (isMarked(at, environment) || (await listensAtAny(socketsOf(at, socketOf(at, unnamed), unnamed), unnamed))) {
        return new Workspace(at, environment);
      }
    }
    return undefined;
  }

  /**
   * Where its daemon may listen, in the order to look: one that was started
   * with another runtime directory listens where its lock says (SEC-1).
   */
  sockets(): string[] {
    return socketsOf(this.rootBytes, this.socket, this.environment);
  }

  /** Refuses a daemon that serves another workspace (SEC-8). */
  checkServed(served: string): void {
    if (served === this.root) return;
    const both = `its daemon serves ${served}, not ${this.root}`;
    throw new TouchmarkError("place", `${this.socket}: ${both}: unset TOUCHMARK_SOCKET`);
  }

  /** Whether its daemon runs, or something else listens there. */
  isRunning(): Promise<boolean> {
    return listensAtAny(this.sockets(), this.environment);
  }
}

async function listensAtAny(sockets: string[], environment: Environment): Promise<boolean> {
  for (const socket of sockets) if (await listens(socket, environment)) return true;
  return false;
}

/** Whether something of this user's listens on a socket. */
async function listens(socket: string, environment: Environment): Promise<boolean> {
  try {
    // The file is looked at first: most directories have none.
    if (!isOurs(socket, environment)) return false;
    (await Connection.open(socket, LOOK)).close();
    return true;
  } catch (error) {
    // A daemon that is stopped or busy is there all the same.
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
