// Files: those that changed lately, to choose one whose history is shown.

import { useEffect, useMemo, useState } from "preact/hooks";
import { call } from "../api.js";
import { query, versionsSeen } from "../live.js";
import { authors, type Who } from "../model/authors.js";
import { type Ref, refOf, refShown } from "../names.js";
import { Ago, Badge, Command, Counts, Empty, FileLink } from "../parts/basics.js";
import { Virtual } from "../parts/virtual.js";
import type { LogEntry } from "../protocol.js";
import { count } from "../times.js";
import { again } from "../stream.js";

interface File {
  ref: Ref;
  time: number;
  versions: number;
  who: Who[];
  added: number;
  removed: number;
}

const log = query(async () => (await call("file/log", { limit: 1000, lines: true })).entries, 1000);

/** One row for each file of the log, the newest first. */
function byFile(entries: readonly LogEntry[]): File[] {
  const found = new Map<Ref, File>();
  for (const { version, lines } of entries) {
    const ref = refOf(version);
    const who = authors.of(version.author);
    let file = found.get(ref);
    if (!file) found.set(ref, (file = { ref, time: version.time, versions: 0, who: [], added: 0, removed: 0 }));
    file.versions++;
    file.added += lines?.added ?? 0;
    file.removed += lines?.removed ?? 0;
    if (!file.who.some((one) => one.key === who.key)) file.who.push(who);
  }
  return [...found.values()];
}

export function Files() {
  const { value: entries, error } = log.value;
  const [wanted, setWanted] = useState("");
  useEffect(() => log.poke(), [versionsSeen.value, again.value]);
  const all = useMemo(() => byFile(entries ?? []), [entries]);
  const list = useMemo(() => all.filter((file) => refShown(file.ref).toLowerCase().includes(wanted.toLowerCase())), [all, wanted]);
  return (
    <section class="files" aria-labelledby="files">
      <div class="head">
        <h1 id="files">Files</h1>
        <label class="search">
          <span class="unseen">Find a file by its name</span>
          <input type="search" placeholder="Find by name" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
        </label>
        <p class="summary"><span>{count(list.length, "file")} changed lately, the newest first</span></p>
      </div>
      {error && <p class="wrong" role="alert">{error}</p>}
      {entries && all.length === 0 ? (
        <Empty title="No file has changed yet.">
          <p>touchmark records a file from when an agent first reads or mentions it. Ask an agent to read one, or record a read yourself:</p>
          <p><Command text={"touchmark call file/readText '{\"session\":\"me\",\"path\":\"README.md\"}'"} /></p>
        </Empty>
      ) : entries && list.length === 0 ? (
        <Empty title="No file that changed lately has this in its name.">
          <p>Any file of the workspace has a history: <a href={`#/file/${encodeURIComponent(wanted)}`}>show {refShown(wanted)}</a>.</p>
        </Empty>
      ) : (
        <Virtual
          items={list}
          heightOf={() => 36}
          keyOf={(file) => file.ref}
          label="Files"
          render={(file) => (
            <div class="file-row">
              <FileLink file={file.ref} />
              <span class="authors">{file.who.slice(0, 4).map((who) => <Badge key={who.key} who={who} />)}</span>
              <Counts added={file.added} removed={file.removed} />
              <span class="soft">{count(file.versions, "version")}</span>
              <span class="soft when"><Ago time={file.time} /></span>
            </div>
          )}
        />
      )}
    </section>
  );
}
