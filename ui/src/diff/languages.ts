// Syntax colours by a file's name. Each language is a chunk of its own, loaded
// when a file of it is first shown.

import { defineLanguageFacet, Language, LRLanguage, StreamLanguage } from "@codemirror/language";
import type { LRParser } from "@lezer/lr";

type Load = () => Promise<Language>;

// The parsers without the rest of the editor's language packages, which
// complete and fold while one types.
const of = (parser: LRParser, dialect = ""): Language => LRLanguage.define({ parser: parser.configure({ dialect }) });

const script = (dialect: string): Load => async () => of((await import("@lezer/javascript")).parser, dialect);
const html: Load = async () => of((await import("@lezer/html")).parser);
const yaml: Load = async () => of((await import("@lezer/yaml")).parser);
const markdown: Load = async () => new Language(defineLanguageFacet(), (await import("@lezer/markdown")).parser, [], "markdown");
const python: Load = async () => of((await import("@lezer/python")).parser);
const clike = (name: "c" | "cpp" | "java" | "csharp" | "kotlin"): Load => async () => StreamLanguage.define((await import("@codemirror/legacy-modes/mode/clike"))[name]);
const shell: Load = async () => StreamLanguage.define((await import("@codemirror/legacy-modes/mode/shell")).shell);

/** By the part of the name after its last dot, or the whole name. */
const BY_ENDING: Record<string, Load> = {
  js: script("jsx"), mjs: script(""), cjs: script(""), jsx: script("jsx"),
  ts: script("ts"), mts: script("ts"), cts: script("ts"), tsx: script("jsx ts"),
  rs: async () => of((await import("@lezer/rust")).parser),
  go: async () => of((await import("@lezer/go")).parser),
  java: clike("java"), kt: clike("kotlin"), cs: clike("csharp"),
  json: async () => of((await import("@lezer/json")).parser),
  toml: async () => StreamLanguage.define((await import("@codemirror/legacy-modes/mode/toml")).toml),
  c: clike("c"), h: clike("cpp"), cc: clike("cpp"), cpp: clike("cpp"), cxx: clike("cpp"), hh: clike("cpp"), hpp: clike("cpp"),
  py: python, pyi: python,
  css: async () => of((await import("@lezer/css")).parser),
  html, htm: html, svg: html, xml: html, vue: html,
  yml: yaml, yaml, md: markdown, markdown,
  sh: shell, bash: shell, zsh: shell,
};

/** Returns the language of a file, or undefined for a file that is shown without colours. */
export async function languageOf(path: string): Promise<Language | undefined> {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  const load = BY_ENDING[name.slice(name.lastIndexOf(".") + 1)];
  return load?.();
}
