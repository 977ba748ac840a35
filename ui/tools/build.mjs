// Builds dist/ from src/.
//
//   node tools/build.mjs          writes dist/
//   node tools/build.mjs --check  exit code 1 if dist/ is not what src/ gives
//
// The result does not depend on the machine: no source maps, no times, no
// absolute paths.

import { build } from "esbuild";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DIST = join(ROOT, "dist");
/** The bounds of the issue: of all files, and of those that every visit loads. */
const MOST = 900_000;
const MOST_AT_FIRST = 300_000;

async function bundle(out) {
  rmSync(out, { recursive: true, force: true });
  const { metafile } = await build({
    absWorkingDir: ROOT,
    metafile: true,
    entryPoints: [
      { in: "src/main.tsx", out: "app" },
      { in: "src/app.css", out: "app" },
      { in: "src/index.html", out: "index" },
      { in: "src/icon.svg", out: "icon" },
    ],
    outdir: out,
    bundle: true,
    splitting: true,
    format: "esm",
    target: ["chrome123", "firefox120", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    legalComments: "none",
    charset: "utf8",
    chunkNames: "chunks/[name]-[hash]",
    loader: { ".html": "copy", ".svg": "copy" },
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "warning",
  });
  nameChunks(out);
  writeFileSync(join(out, "licenses.txt"), licenses(Object.keys(metafile.inputs)));
}

/** The licences of the packages that are in the bundle: they want to be handed on with it. */
function licenses(inputs) {
  const names = inputs.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
  const texts = new Map();
  for (const name of [...new Set(names)].sort()) {
    const directory = join(ROOT, "node_modules", name);
    const file = readdirSync(directory).find((one) => /^licen[cs]e/i.test(one));
    if (file === undefined) throw new Error(`${name} has no licence`);
    const text = readFileSync(join(directory, file), "utf8").trim();
    texts.set(text, [...(texts.get(text) ?? []), name]);
  }
  return [...texts].map(([text, of]) => `${of.join(", ")}\n\n${text}\n`).join(`\n${"-".repeat(72)}\n\n`);
}

/** Takes the hashes out of the chunks' names, so that a build changes contents and no names. */
function nameChunks(out) {
  const built = files(out);
  const chunks = Object.keys(built).filter((name) => name.startsWith("chunks/"));
  const stems = chunks.map((name) => name.replace(/-[A-Z0-9]{8}\.js$/, ""));
  const renamed = new Map(
    chunks.map((name, index) => {
      const alike = stems.filter((stem) => stem === stems[index]).length;
      const number = stems.slice(0, index + 1).filter((stem) => stem === stems[index]).length;
      return [name, `${stems[index]}${alike > 1 ? `-${number}` : ""}.js`];
    }),
  );
  const base = (name) => name.replace("chunks/", "");
  rmSync(join(out, "chunks"), { recursive: true, force: true });
  mkdirSync(join(out, "chunks"));
  for (const [name, content] of Object.entries(built)) {
    if (!name.endsWith(".js")) continue;
    let text = String(content);
    for (const [before, after] of renamed) text = text.replaceAll(base(before), base(after));
    writeFileSync(join(out, renamed.get(name) ?? name), text);
  }
}

/** Every file below a directory, by its path in it. */
function files(directory) {
  const found = {};
  const visit = (at) => {
    for (const name of readdirSync(at).sort()) {
      const path = join(at, name);
      if (statSync(path).isDirectory()) visit(path);
      else found[relative(directory, path)] = readFileSync(path);
    }
  };
  visit(directory);
  return found;
}

/** The files that a first visit loads: the page, its style, and app.js with all that it imports. */
function first(built) {
  const wanted = new Set(["index.html", "app.css", "icon.svg"]);
  const follow = (name) => {
    if (wanted.has(name)) return;
    wanted.add(name);
    const base = name.startsWith("chunks/") ? "chunks/" : "";
    for (const [, path] of String(built[name]).matchAll(/(?:from|import)"\.\/([^"]+\.js)"/g)) follow(base + path);
  };
  follow("app.js");
  return [...wanted];
}

const size = (built, names) => names.reduce((sum, name) => sum + built[name].length, 0);

function bounded(built) {
  const all = size(built, Object.keys(built));
  const atFirst = size(built, first(built));
  console.log(`dist: ${all} bytes in ${Object.keys(built).length} files; a first visit loads ${atFirst}`);
  if (all > MOST || atFirst > MOST_AT_FIRST) {
    console.error(`too large: at most ${MOST} bytes, and ${MOST_AT_FIRST} for a first visit`);
    process.exitCode = 1;
  }
}

if (process.argv.includes("--check")) {
  const out = mkdtempSync(join(tmpdir(), "touchmark-ui-"));
  try {
    await bundle(out);
    const [made, committed] = [files(out), files(DIST)];
    const names = new Set([...Object.keys(made), ...Object.keys(committed)]);
    const differing = [...names].filter((name) => !made[name]?.equals(committed[name] ?? Buffer.alloc(0)));
    if (differing.length > 0) {
      console.error(`dist/ is not what src/ gives; run \`npm --prefix ui run build\`: ${differing.join(", ")}`);
      process.exitCode = 1;
    }
    bounded(made);
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
} else {
  const out = mkdtempSync(join(tmpdir(), "touchmark-ui-"));
  await bundle(out);
  rmSync(DIST, { recursive: true, force: true });
  cpSync(out, DIST, { recursive: true });
  rmSync(out, { recursive: true, force: true });
  bounded(files(DIST));
}
