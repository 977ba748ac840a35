// Names of files on the wire (docs/protocol.md).

import { TextDecoder } from "node:util";

/**
 * A path relative to the workspace, or absolute inside it: a string, or its
 * bytes if it is not UTF-8.
 */
export type Path = string | Uint8Array;

/** A file in a request: its `path`, or its `uri` if the name is not UTF-8. */
export type Named = { path: string } | { uri: string };

const SLASH = 0x2f;
const strict = new TextDecoder("utf-8", { fatal: true });

/** Returns bytes as text; undefined if they are not UTF-8. */
export function asText(bytes: Uint8Array): string | undefined {
  try {
    // The decoder drops a byte order mark, which is part of the content.
    const text = strict.decode(bytes);
    return Buffer.byteLength(text) === bytes.length ? text : `\ufeff${text}`;
  } catch {
    return undefined;
  }
}

/** Returns a file's name for a request. `root` is the workspace's path. */
export function named(path: Path, root: Uint8Array): Named {
  const text = typeof path === "string" ? path : asText(path);
  return text === undefined ? { uri: uriOf(path as Uint8Array, root) } : { path: text };
}

/**
 * Returns a file's name for a list of names and URIs. `root` is the workspace's
 * path.
 */
export function listed(path: Path, root: Uint8Array): string {
  const one = named(path, root);
  return "path" in one ? one.path : one.uri;
}

/** Returns the bytes of a file's absolute path. */
export function absolute(path: Path, root: Uint8Array): Buffer {
  const bytes = Buffer.from(path);
  if (bytes[0] === SLASH) return bytes;
  return Buffer.concat([root, Buffer.from(root.at(-1) === SLASH ? "" : "/"), bytes]);
}

/**
 * Returns the exact name of a file in an answer, relative to the workspace if
 * it is inside.
 */
export function nameIn(answer: { path: string; uri?: string | null }, root: Uint8Array): Path {
  if (answer.uri == null) return answer.path;
  const bytes = bytesOf(answer.uri);
  const inside = bytes.subarray(0, root.length).equals(root) && bytes[root.length] === SLASH;
  return inside ? bytes.subarray(root.length + 1) : bytes;
}

function uriOf(path: Uint8Array, root: Uint8Array): string {
  let uri = "file://";
  for (const byte of absolute(path, root)) {
    const plain = /[A-Za-z0-9._~/-]/.test(String.fromCharCode(byte));
    uri += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return uri;
}

function bytesOf(uri: string): Buffer {
  const encoded = uri.replace(/^file:\/\//i, "");
  const bytes: number[] = [];
  for (let at = 0; at < encoded.length; at++) {
    if (encoded[at] === "%") {
      bytes.push(Number.parseInt(encoded.slice(at + 1, at + 3), 16));
      at += 2;
    } else {
      bytes.push(...Buffer.from(encoded[at] as string));
    }
  }
  return Buffer.from(bytes);
}
