// The TypeScript compiler from this package's development dependencies.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const own = fileURLToPath(new URL("../", import.meta.url));

/** The directory of the compiled package. */
export const home = process.env.TOUCHMARK_DIST ? dirname(process.env.TOUCHMARK_DIST) : own;

/** The directory whose `node_modules` has the compiler. */
export const tools = process.env.TOUCHMARK_TOOLS ?? own;

export const ts = createRequire(pathToFileURL(join(tools, "package.json")))("typescript");

/**
 * Type-checks files and compiles each next to its source. Throws the compiler's
 * errors.
 */
export function compile(files) {
  const program = ts.createProgram(files, {
    target: ts.ScriptTarget.ES2022,
    lib: ["lib.es2022.d.ts", "lib.esnext.disposable.d.ts"],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    typeRoots: [join(tools, "node_modules/@types")],
    types: ["node"],
    strict: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
  });
  const { diagnostics } = program.emit();
  const all = [...ts.getPreEmitDiagnostics(program), ...diagnostics];
  if (all.length > 0) {
    const host = { getCanonicalFileName: (name) => name, getCurrentDirectory: () => home, getNewLine: () => "\n" };
    throw new Error(ts.formatDiagnostics(all, host));
  }
}
