// Drives `touchmark mcp` by the protocol's own TypeScript library, which
// compares what comes with the schemas by itself. Arguments: the workspace,
// and the server's command.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const CHANGES = "touchmark://changes";
const [workspace, command, ...args] = process.argv.slice(2);
const file = join(workspace, "a.txt");

const client = new Client({ name: "the-sdk", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
assert.equal(client.getServerVersion().name, "touchmark");
// What it lists is what it compares results with.
const { tools } = await client.listTools();
assert.equal(tools.length, 8);

async function call(name, args, error = false) {
  const result = await client.callTool({ name, arguments: args });
  assert.equal(result.isError, error, JSON.stringify(result));
  assert.equal(result.structuredContent, undefined);
  return result._meta["touchmark/result"];
}

assert.equal((await call("read_file", { path: "a.txt" })).text, "one\n");
assert.equal((await call("read_file", { path: "a.txt" })).verdict, "repeat");

const told = new Promise((resolve) =>
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (note) => resolve(note.params.uri)),
);
await client.subscribeResource({ uri: CHANGES });
writeFileSync(file, "two\n");
assert.equal(await told, CHANGES);

const edit = { path: "a.txt", oldString: "two", newString: "2" };
assert.equal((await call("edit_file", edit, true)).error.code, "stale");
const { changes } = await call("changed_files", {});
assert.deepEqual(changes.map((change) => change.path), ["a.txt"]);
assert.deepEqual((await call("changed_files", {})).changes, []);
const { contents } = await client.readResource({ uri: CHANGES });
assert.deepEqual(JSON.parse(contents[0].text), { changes: [] });

await call("read_file", { path: "a.txt" });
assert.equal((await call("edit_file", edit)).outcome, "applied");
await call("write_file", { path: "b.txt", text: "b\n" });
assert.equal((await call("grep", { pattern: "^2$" })).matches.length, 1);
assert.equal((await call("who_changed", { path: "a.txt" })).versions[0].author.kind, "agent");
await call("checkpoint", { action: "create" });
assert.equal((await call("file_status", {})).files.length, 2);
await client.close();
console.log("done");
