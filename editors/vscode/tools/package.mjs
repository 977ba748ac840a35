// Compiles the extension, with what it needs of the client, and packs it:
//
//   node tools/package.mjs [FILE]    touchmark.vsix unless named
//
// The compiler is this directory's (`npm ci`), or the one in TOUCHMARK_TOOLS. A
// .vsix is a ZIP with a manifest; both are written here, so that nothing but
// the compiler has to be fetched.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as zlib from "node:zlib";

const own = fileURLToPath(new URL("../", import.meta.url));
const out = resolve(process.argv[2] ?? join(own, "touchmark.vsix"));
const tools = process.env.TOUCHMARK_TOOLS ?? own;

const dist = mkdtempSync(join(tmpdir(), "tmvsix"));
try {
  const tsc = join(tools, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [tsc, "-p", own, "--outDir", dist, "--typeRoots", join(tools, "node_modules/@types")], { stdio: "inherit" });
  writeFileSync(out, zip(contents(dist)));
} finally {
  rmSync(dist, { recursive: true, force: true });
}
console.log(out);

/** Name and bytes of everything in the package, in a fixed order. */
function contents(dist) {
  const files = [
    ["[Content_Types].xml", Buffer.from(types())],
    ["extension.vsixmanifest", Buffer.from(manifest(JSON.parse(readFileSync(join(own, "package.json"), "utf8"))))],
  ];
  const add = (name, path) => files.push([`extension/${name}`, readFileSync(path)]);
  for (const name of ["package.json", "README.md", "media/agent.svg"]) add(name, join(own, name));
  for (const name of ["LICENSE-MIT", "LICENSE-APACHE"]) add(name, join(own, "../..", name));
  for (const path of walk(dist)) add(`dist/${relative(dist, path)}`, path);
  return files;
}

function walk(directory) {
  const entries = readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) => {
    const path = join(directory, entry.name);
    return entry.isDirectory() ? walk(path) : [path];
  });
}

function types() {
  const kinds = { json: "application/json", js: "application/javascript", md: "text/markdown", svg: "image/svg+xml", vsixmanifest: "text/xml", "": "text/plain" };
  const rows = Object.entries(kinds).filter(([end]) => end !== "").map(([end, type]) => `<Default Extension=".${end}" ContentType="${type}"/>`);
  return `<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">${rows.join("")}</Types>\n`;
}

function manifest({ name, publisher, version, displayName, description, engines, extensionKind }) {
  const text = (value) => value.replace(/[<>&"]/g, (one) => `&#${one.charCodeAt(0)};`);
  return `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="${text(name)}" Version="${text(version)}" Publisher="${text(publisher)}"/>
    <DisplayName>${text(displayName)}</DisplayName>
    <Description xml:space="preserve">${text(description)}</Description>
    <Categories>Other</Categories>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value="${text(engines.vscode)}"/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="${text(extensionKind.join(","))}"/>
    </Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
  </Assets>
</PackageManifest>
`;
}

/** A ZIP archive, without times, so that the same sources give the same bytes. */
function zip(files) {
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const [name, bytes] of files) {
    const packed = zlib.deflateRawSync(bytes);
    const label = Buffer.from(name);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0); // version needed
    fields.writeUInt16LE(0x0800, 2); // names are UTF-8
    fields.writeUInt16LE(8, 4); // deflate
    fields.writeUInt16LE(0x0021, 8); // 1980-01-01
    fields.writeUInt32LE(crc32(bytes), 10);
    fields.writeUInt32LE(packed.length, 14);
    fields.writeUInt32LE(bytes.length, 18);
    fields.writeUInt16LE(label.length, 22);
    parts.push(Buffer.from("PK\x03\x04", "latin1"), fields, label, packed);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(offset, 10);
    directory.push(Buffer.from("PK\x01\x02\x14\x00", "latin1"), fields, rest, label);
    offset += 4 + fields.length + label.length + packed.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.length, 4);
  end.writeUInt16LE(files.length, 6);
  end.writeUInt32LE(listed.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, listed, Buffer.from("PK\x05\x06", "latin1"), end]);
}

function crc32(bytes) {
  // Node 18 has none of its own.
  if (zlib.crc32 !== undefined) return zlib.crc32(bytes);
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
