// What undos did and what they left, with a way back.

import { useEffect } from "preact/hooks";
import { call, sentence } from "../../api.js";
import { now, review, undos } from "../../live.js";
import { authors } from "../../model/authors.js";
import { shown, shownText } from "../../names.js";
import { Badge, Word } from "../../parts/basics.js";
import { toast } from "../../parts/toast.js";
import type { Undone, UndoneFile } from "../../protocol.js";
import { ago, count } from "../../times.js";

const WORKED: ReadonlySet<string> = new Set(["undone", "partly", "deleted", "restored", "renamed", "unchanged"]);

/** Whether something stays in a file, so that it has to be said. */
export const hasLeft = (file: UndoneFile): boolean => !WORKED.has(file.outcome) || file.outcome === "partly";

/** Says what an undo did, with a way back. */
export function tell(done: Undone): void {
  const { undo, files } = done;
  const worked = files.filter((file) => WORKED.has(file.outcome) && file.outcome !== "unchanged");
  if (!undo || worked.length === 0) {
    toast(files.some((file) => file.outcome === "changed") ? "The file was saved in that moment; nothing was undone. Try again." : "Nothing was undone; see what stays, and why.", undefined, true);
    return;
  }
  const changes = worked.reduce((sum, file) => sum + Math.max(1, file.hunks), 0);
  toast(`Undid ${count(changes, "change")} of ${worked.length === 1 ? shown(worked[0]!.path) : count(worked.length, "file")}.`, { text: "Take back (z)", run: () => void redo(undo) });
}

async function redo(undo: string): Promise<void> {
  try {
    const done = await call("redo", { undo });
    const files = done.files.filter((file) => file.outcome !== "unchanged");
    const stuck = files.filter((file) => !WORKED.has(file.outcome));
    toast(stuck.length > 0 ? `Not all came back: ${stuck.map((file) => `${shown(file.path)}: ${file.cause ?? file.outcome}`).join("; ")}` : `Took back ${undo}: ${count(files.length, "file")} as before the undo.`, undefined, stuck.length > 0);
  } catch (wrong) {
    toast(sentence(wrong), undefined, true);
  }
  review.poke();
  undos.poke();
}

const OUTCOMES: Record<string, string> = {
  conflict: "stays, since the same lines have changed afterwards",
  notKept: "stays, since the contents that it needs are no longer stored",
  changed: "stays, since the file was saved in that moment; try again",
  failed: "could not be written",
  partly: "is undone in part",
  left: "stays",
};

/** What stays, and why. */
export function Stays({ files, close }: { files: readonly UndoneFile[]; close?: () => void }) {
  return (
    <div class="stays" role="alert">
      {files.map((file) => (
        <div key={file.path}>
          <p><strong>{shown(file.path)}</strong> {OUTCOMES[file.outcome] ?? file.outcome}{file.cause ? `: ${shown(file.cause)}` : "."}</p>
          {file.left?.map((left) => <p class="soft" key={left.why}>{left.lines ? `Lines ${left.lines.start}–${left.lines.end}: ` : ""}{shown(left.why)}.</p>)}
          {file.conflicts?.map((conflict) => (
            <div key={`${conflict.lines.start} ${conflict.lines.end}`}>
              <p class="soft">
                <Word is="conflict">Conflict</Word> in lines {conflict.lines.start}–{conflict.lines.end}, changed afterwards by <Badge who={authors.of(conflict.by)} named />. Before the agent&rsquo;s change there was:
              </p>
              <pre tabIndex={0}>{conflict.before === "" ? "(nothing)" : shownText(conflict.before)}</pre>
            </div>
          ))}
        </div>
      ))}
      {close && <button type="button" class="quiet" onClick={close}>Close</button>}
    </div>
  );
}

export function History() {
  const found = undos.value.value;
  useEffect(() => undos.poke(), []);
  if (!found || found.length === 0) return null;
  return (
    <details class="history">
      <summary>What was undone <span class="soft">{found.length}</span></summary>
      <ul tabIndex={0} aria-label="Undos, the newest first">
        {found.slice(0, 50).map((row) => (
          <li key={row.undo}>
            <span class="soft">{ago(row.time, now.value)}</span>
            <span class="what" title={row.paths.map(shown).join("\n")}>{row.redoOf ? `took back ${row.redoOf}` : shown(row.what)}</span>
            <button type="button" class="quiet" onClick={() => void redo(row.undo)}>Take back</button>
          </li>
        ))}
      </ul>
    </details>
  );
}
