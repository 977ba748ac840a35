// Where the daemon of a workspace listens. Daemon and clients must agree on it
// (proto/src/places.rs).

import { createHash } from "node:crypto";
import { lstatSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";

import { TouchmarkError, systemCode } from "./errors.js";
import { refusal, thisProcess } from "./trust.js";

/** The variables of an environment. */
export type Environment = Record<string, string | undefined>;

/**
 * The length in bytes of the longest path of a socket that the kernel accepts.
 */
const MAX_SOCKET_BYTES = 107;

/** Returns the directory of all sockets of this user. */
export function runtimeDirectory(environment: Environment): string {
  const runtime = absolute(environment["XDG_RUNTIME_DIR"]);
  if (runtime !== undefined) return join(runtime, "touchmark");
  const cache = absolute(environment["XDG_CACHE_HOME"]) ?? join(home(environment), ".cache");
  return join(cache, "touchmark", "run");
}

/** Returns the directory of all states and locks of this user. */
function stateDirectory(environment: Environment): string {
  const state = absolute(environment["XDG_STATE_HOME"]) ?? join(home(environment), ".local", "state");
  return join(state, "touchmark");
}

function home(environment: Environment): string {
  return environment["HOME"] || homedir();
}

/**
 * Returns an absolute path. A relative path in one of these variables is
 * invalid and ignored.
 */
function absolute(named: string | undefined): string | undefined {
  return named !== undefined && isAbsolute(named) ? named : undefined;
}

/**
 * Returns the workspace's key: the first 16 hex digits of the SHA-256 of its
 * canonical path's bytes.
 */
export function keyOf(root: Uint8Array): string {
  return createHash("sha256").update(root).digest("hex").slice(0, 16);
}

/** Returns the socket of the workspace with this canonical path. */
export function socketOf(root: Uint8Array, environment: Environment): string {
  return join(runtimeDirectory(environment), `${keyOf(root)}.sock`);
}

/**
 * Returns the socket that `TOUCHMARK_SOCKET` names, or else the workspace's.
 */
export function chosenSocket(root: Uint8Array, environment: Environment): string {
  const socket = environment["TOUCHMARK_SOCKET"] || socketOf(root, environment);
  const length = Buffer.byteLength(socket);
  if (length > MAX_SOCKET_BYTES) {
    const most = `the path of a socket may have ${MAX_SOCKET_BYTES} bytes, this one has ${length}`;
    throw new TouchmarkError("place", `${socket}: ${most}: set TOUCHMARK_SOCKET to a shorter one`);
  }
  return socket;
}

/**
 * Returns the sockets that the workspace's daemon may listen on, in the order
 * to try them. A daemon that was started with another runtime directory listens
 * elsewhere than this environment says; its lock file names the socket (SEC-1).
 */
export function socketsOf(root: Uint8Array, own: string, environment: Environment): string[] {
  const held = heldSocket(root, environment);
  if (held === undefined || held === own) return [own];
  // A socket that `TOUCHMARK_SOCKET` names is tried first.
  return environment["TOUCHMARK_SOCKET"] ? [own, held] : [held, own];
}

/**
 * Returns the socket that the workspace's lock file names, if it exists and is
 * this user's.
 */
function heldSocket(root: Uint8Array, environment: Environment): string | undefined {
  try {
    const lock = join(stateDirectory(environment), `${keyOf(root)}.lock`);
    if (!isOwn(lstatSync(lock).uid)) return undefined;
    // The file has the daemon's process id, its socket and the workspace, each
    // followed by a line feed.
    const [, socket, workspace] = readFileSync(lock, "utf8").split("\n");
    if (socket === undefined || !isAbsolute(socket) || !workspace) return undefined;
    const there = lstatSync(socket);
    return there.isSocket() && isOwn(there.uid) ? socket : undefined;
  } catch {
    // No daemon runs, or only one that this user may not use.
    return undefined;
  }
}

function isOwn(owner: number): boolean {
  const own = process.getuid?.();
  return own === undefined || owner === own;
}

/**
 * Returns whether a socket exists. Throws if another user may have created it
 * (SEC-8): Node does not report which user listens.
 */
export function isOurs(socket: string, environment: Environment): boolean {
  const stat = look(socket);
  if (!stat?.isSocket()) return false;
  const me = thisProcess(environment);
  const directory = look(dirname(socket));
  if (me === undefined || directory === undefined) return true;
  const why = refusal(me, directory, stat);
  if (why !== undefined) throw new TouchmarkError("place", `${socket}: ${why}`);
  return true;
}

/**
 * Returns the list of directories that the user trusts although they belong to
 * other users.
 */
export function trustedFile(environment: Environment): string {
  const config = absolute(environment["XDG_CONFIG_HOME"]) ?? join(home(environment), ".config");
  return join(config, "touchmark", "trusted");
}

function look(path: string) {
  try {
    return lstatSync(path);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(systemCode(error))) return undefined;
    throw new TouchmarkError("place", `${path}: ${(error as Error).message}`, { cause: error });
  }
}
