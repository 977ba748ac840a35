// Which files and sockets are trusted, by their owner: files that mark a
// workspace (SEC-6), and sockets of its daemon (SEC-8). The cases are in
// bindings/conformance/trust.

import { closeSync, lstatSync, openSync, readSync } from "node:fs";

const OTHERS_WRITE = 0o002;
const GROUP_WRITES = 0o020;
/** In a sticky directory, a user may remove only their own files. */
const STICKY = 0o1000;
/** The longest list of trusted directories that is read, in bytes. */
const MOST_LIST = 1 << 20;

/** Owner and mode of a file, as `lstat` returns them. */
export type Owned = { uid: number; mode?: number };

/**
 * The user of this process. `sudo` is the user in `SUDO_UID`, who runs this
 * process as root.
 */
export type Me = { uid: number; sudo?: number | undefined };

/** Returns the user of this process; undefined on systems without user ids. */
export function thisProcess(variables: Record<string, string | undefined>): Me | undefined {
  const uid = process.geteuid?.();
  if (uid === undefined) return undefined;
  const sudo = /^[0-9]+$/.test(variables["SUDO_UID"] ?? "") ? Number(variables["SUDO_UID"]) : undefined;
  return { uid, sudo };
}

/**
 * Returns whether a file in a directory is trusted: both belong to trusted
 * users, and not every user may replace the file.
 */
export function takes(me: Me, directory: Owned, file: Owned): boolean {
  const trusts = (uid: number) => uid === me.uid || uid === 0 || (me.uid === 0 && uid === me.sudo);
  const mode = directory.mode ?? 0;
  const openToAll = (mode & OTHERS_WRITE) !== 0 && (mode & STICKY) === 0;
  return trusts(file.uid) && trusts(directory.uid) && !openToAll;
}

/**
 * Returns whether a process of the user `peer` may answer as this user's
 * daemon.
 */
export function hears(me: Me, peer: number): boolean {
  return peer === me.uid || peer === 0;
}

/**
 * Returns why a socket must not be used; undefined if it may be. Decides by the
 * socket's owner, and by whether other users can put a socket into its
 * directory, since Node does not report the peer's user.
 */
export function refusal(me: Me, directory: Owned, socket: Owned): string | undefined {
  if (!hears(me, socket.uid)) return `belongs to user ${socket.uid}, not to ${me.uid}`;
  if (!hears(me, directory.uid)) return `its directory belongs to user ${directory.uid}`;
  const mode = directory.mode ?? 0;
  const open = (mode & (GROUP_WRITES | OTHERS_WRITE)) !== 0;
  return open && (mode & STICKY) === 0 ? "others may write in its directory: make its mode 0700" : undefined;
}

/**
 * Returns whether a list names a directory. Each line is the directory's
 * canonical path, the path of a directory above it followed by `/*`, or `*` for
 * all directories.
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

/**
 * Returns whether a mark exists and is trusted. `directory` must have no
 * symlinks in its path.
 */
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
