// How contents are known.

import { createHash } from "node:crypto";

/** The hash by which touchmark knows a content: SHA-256 of the file's bytes. */
export function hashOf(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
