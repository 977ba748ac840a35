// The hash of contents.

import { createHash } from "node:crypto";

/** Returns the hash that identifies a content: SHA-256 of the file's bytes. */
export function hashOf(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
