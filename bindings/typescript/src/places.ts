// Where the daemon of a workspace listens. Daemon and clients must agree on
// this (proto/src/places.rs).

import { createHash } from "node:crypto";
import { lstatSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";

import { TouchmarkError, systemCode } from "./errors.js";
import { refusal, thisProcess } from "./trust.js";

/** The variables of an environment. */
export type Environment = Record<string, string | undefined>;

/** The longest path of a socket that the kernel takes, in bytes. */
const MAX_SOCKET_BYTES = 107;

/** The directory of all sockets of this user. */
export function runtimeDirectory(environment: Environment): string {
  const runtime = absolute(environment["XDG_RUNTIME_DIR"]);
  if (runtime !== undefined) return join(runtime, "touchmark");
  const cache = absolute(environment["XDG_CACHE_HOME"]) ?? join(home(environment), ".cache");
  return join(cache, "touchmark", "run");
}

/** The directory of all states and locks of this user. */
function stateDirectory(environment: Environment): string {
  const state = absolute(environment["XDG_STATE_HOME"]) ?? join(home(environment), ".local", "state");
  return join(state, "touchmark");
}

function home(environment: Environment): string {
  return environment["HOME"] || homedir();
}

/** A relative name in one of these variables is not valid, and passed over. */
function absolute(named: string | undefined): string | undefined {
  return named !== undefined && isAbsolute(named) ? named : undefined;
}

/** The first 16 hex digits of the SHA-256 of a canonical path's bytes. */
export function keyOf(root: Uint8Array): string {
  return createHash("sha256").update(root).digest("hex").slice(0, 16);
}

/** The socket of a workspace, named by its canonical path. */
export function socketOf(root: Uint8Array, environment: Environment): string {
  return join(runtimeDirectory(environment), `${keyOf(root)}.sock`);
}

/** The socket as `TOUCHMARK_SOCKET` names it, or the workspace's own. */
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
 * Where to look for the workspace's daemon, in order. One that was started
 * with another runtime directory listens elsewhere than one of this
 * environment would; its lock says where (SEC-1).
 */
export function socketsOf(root: Uint8Array, own: string, environment: Environment): string[] {
  const held = heldSocket(root, environment);
  if (held === undefined || held === own) return [own];
  // What is named outright comes first.
  return environment["TOUCHMARK_SOCKET"] ? [own, held] : [held, own];
}

/** The socket that the workspace's lock names, if it is there and this user's. */
function heldSocket(root: Uint8Array, environment: Environment): string | undefined {
  try {
    const lock = join(stateDirectory(environment), `${keyOf(root)}.lock`);
    if (!isOwn(lstatSync(lock).uid)) return undefined;
    // The daemon's number, its socket and the workspace, each with a line feed.
    const [, socket, workspace] = readFileSync(lock, "utf8").split("\n");
    if (socket === undefined || !isAbsolute(socket) || !workspace) return undefined;
    const there = lstatSync(socket);
    return there.isSocket() && isOwn(there.uid) ? socket : undefined;
  } catch {
    // No daemon runs, or none that this user may ask.
    return undefined;
  }
}

function isOwn(owner: number): boolean {
  const own = process.getuid?.();
  return own === undefined || owner === own;
}

/**
 * Refuses a socket that somebody else may have put there (SEC-8): Node does not
 * tell who listens. `false` where there is no socket.
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

/** The list of directories that the user trusts though they are somebody else's. */
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
