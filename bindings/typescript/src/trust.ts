// Who is taken at their word: whose files mark a workspace (SEC-6), and which
// sockets are dialled (SEC-8). The cases are in bindings/conformance/trust.

import { closeSync, lstatSync, openSync, readSync } from "node:fs";

const OTHERS_WRITE = 0o002;
const GROUP_WRITES = 0o020;
/** Who may write in the directory may remove only what is theirs. */
const STICKY = 0o1000;
/** The longest list of trusted directories that is read, in bytes. */
const MOST_LIST = 1 << 20;

/** Owner and mode of a file, as `lstat` tells them. */
export type Owned = { uid: number; mode?: number };

/** Whose process this is; whom root works for, if `SUDO_UID` says so. */
export type Me = { uid: number; sudo?: number | undefined };

/** This process. Nothing where the system has no such users. */
export function thisProcess(variables: Record<string, string | undefined>): Me | undefined {
  const uid = process.geteuid?.();
  if (uid === undefined) return undefined;
  const sudo = /^[0-9]+$/.test(variables["SUDO_UID"] ?? "") ? Number(variables["SUDO_UID"]) : undefined;
  return { uid, sudo };
}

/**
 * Whether a file in a directory is taken over: both belong to who is trusted,
 * and not everybody may put another in its place.
 */
export function takes(me: Me, directory: Owned, file: Owned): boolean {
  const trusts = (uid: number) => uid === me.uid || uid === 0 || (me.uid === 0 && uid === me.sudo);
  const mode = directory.mode ?? 0;
  const openToAll = (mode & OTHERS_WRITE) !== 0 && (mode & STICKY) === 0;
  return trusts(file.uid) && trusts(directory.uid) && !openToAll;
}

/** Whether a process of `peer` may answer as this user's daemon. */
export function hears(me: Me, peer: number): boolean {
  return peer === me.uid || peer === 0;
}

/**
 * The same by the socket, since Node does not tell a peer's user: nobody else
 * can have put it into its directory. Why not, or nothing.
 */
export function refusal(me: Me, directory: Owned, socket: Owned): string | undefined {
  if (!hears(me, socket.uid)) return `belongs to user ${socket.uid}, not to ${me.uid}`;
  if (!hears(me, directory.uid)) return `its directory belongs to user ${directory.uid}`;
  const mode = directory.mode ?? 0;
  const open = (mode & (GROUP_WRITES | OTHERS_WRITE)) !== 0;
  return open && (mode & STICKY) === 0 ? "others may write in its directory: make its mode 0700" : undefined;
}

/**
 * Whether a list names a directory: a line is its canonical path, that of one
 * above it and `/*`, or `*` for all.
 */
export function isListed(list: Uint8Array, directory: Uint8Array): boolean {
  const named = Buffer.from(directory).toString("latin1");
  return Buffer.from(list)
    .toString("latin1")
    .split("\n")
    .map((line) => line.replace(/^[ \t\r\f]+|[ \t\r\f]+$/g, ""))
    .some((line) => {
      if (line === "*" || (line.startsWith("/") && line === named)) return true;
      const below = line.startsWith("/") && line.endsWith("/*") ? line.slice(0, -1) : undefined;
      return below !== undefined && named.startsWith(below) && named.length > below.length;
    });
}

/** Whether a mark is there and taken over, in a directory that is named without links. */
export function marks(name: string, directory: Buffer, variables: Record<string, string | undefined>, list: string): boolean {
  try {
    const file = lstatSync(Buffer.concat([directory, Buffer.from(`/${name}`)]));
    const me = thisProcess(variables);
    if (me === undefined || takes(me, lstatSync(directory), file)) return true;
    return isListed(beginning(list), directory);
  } catch {
    return false;
  }
}

function beginning(path: string): Buffer {
  const file = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(MOST_LIST);
    return bytes.subarray(0, readSync(file, bytes, 0, MOST_LIST, 0));
  } finally {
    closeSync(file);
  }
}
