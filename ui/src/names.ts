// How text from outside is shown (SEC-4): names of files, sessions and commands
// may be chosen by an attacker, so hidden characters in them are escaped. The
// rule is the one of proto/src/quoting.rs; test/names.test.ts has its cases.

const RANGES: ReadonlyArray<readonly [number, number]> = [
  [0x00ad, 0x00ad], [0x034f, 0x034f], [0x061c, 0x061c], [0x115f, 0x1160], [0x17b4, 0x17b5],
  [0x180b, 0x180f], [0x200b, 0x200f], [0x202a, 0x202e], [0x2060, 0x206f], [0x2800, 0x2800],
  [0x3164, 0x3164], [0xfe00, 0xfe0f], [0xfeff, 0xfeff], [0xffa0, 0xffa0], [0xfff0, 0xfffb],
  [0x1bca0, 0x1bca3], [0x1d173, 0x1d17a], [0xe0000, 0xe0fff],
];

/** A class of a regular expression (flag `u`) that has the hidden characters except a tab and line breaks. */
export const HIDDEN_CLASS =
  "\\0-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\xa0" +
  RANGES.map(([from, to]) => `\\u{${from.toString(16)}}-\\u{${to.toString(16)}}`).join("");

const CONTROL_OR_SPACE = /[\p{Cc}\p{White_Space}]/u;

/** Returns whether a character is hidden, or changes how the following text is displayed. */
export function isHidden(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  if (code >= 0x20 && code <= 0x7e) return false;
  return CONTROL_OR_SPACE.test(character) || RANGES.some(([from, to]) => code >= from && code <= to);
}

/** Returns a name with its hidden characters and backslashes escaped, as the command line shows it. */
export function shown(text: string): string {
  // Most names need no change, and long lists of them are shown.
  if (/^[ !-[\]-~]*$/.test(text)) return text;
  let out = "";
  for (const character of text) {
    if (character === "\n") out += "\\n";
    else if (character === "\r") out += "\\r";
    else if (character === "\t") out += "\\t";
    else if (character === "\\") out += "\\\\";
    else if (isHidden(character)) for (let i = 0; i < character.length; i++) out += `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
    else out += character;
  }
  return out;
}

/** Returns lines of a file's content with hidden characters escaped; tabs, line feeds and backslashes stay. */
export function shownText(text: string): string {
  let out = "";
  for (const character of text) out += character === "\t" || character === "\n" || character === "\\" ? character : shown(character);
  return out;
}

/** Returns the directory of a path with its last `/`, and the name in it. */
export function split(path: string): { directory: string; name: string } {
  const cut = path.lastIndexOf("/") + 1;
  return { directory: path.slice(0, cut), name: path.slice(cut) };
}

/**
 * A file as a request names it: its path, or its URI where the name is not
 * UTF-8. No relative path begins with `file://`, since paths have no empty parts.
 */
export type Ref = string;

export function refOf(row: { path: string; uri?: string | undefined }): Ref {
  return row.uri ?? row.path;
}

export function named(ref: Ref): { path?: string; uri?: string } {
  return ref.startsWith("file://") ? { uri: ref } : { path: ref };
}

/** Returns a reference as people read it. */
export function refShown(ref: Ref): string {
  return shown(ref);
}
