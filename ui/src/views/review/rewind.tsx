// Back to a prompt: what agents did since then is undone, after a look at it.

import { useEffect, useState } from "preact/hooks";
import { ApiError, call, sentence } from "../../api.js";
import { now, pages, query, review, sessions, undos } from "../../live.js";
import { authors, type Who } from "../../model/authors.js";
import { doubtsIn } from "../../model/doubts.js";
import { shown, shownText } from "../../names.js";
import { Badge, Choices, Dialog } from "../../parts/basics.js";
import type { CheckpointRow, Undo, Undone, UndoneFile } from "../../protocol.js";
import { connection } from "../../stream.js";
import { ago, count, exact } from "../../times.js";
import { hasLeft, Stays, tell } from "./undone.js";
import { Whose } from "./whose.js";

/** The sessions whose prompts are listed, the last ones that did something; and the prompts. */
const SESSIONS = 30;
const PROMPTS = 100;

interface Prompt {
  row: CheckpointRow;
  session: string;
  who: Who;
}

/** The newest prompts. */
const prompts = query(async (): Promise<Prompt[]> => {
  const recent = [...(sessions.peek().value ?? [])].sort((one, other) => other.lastActive - one.lastActive).slice(0, SESSIONS);
  const found = recent.map(async ({ session, label }) => {
    const rows = await pages(10_000, async (cursor) => {
      const { checkpoints, more } = await call("checkpoint/list", { session, cursor });
      return { rows: checkpoints, more };
    });
    return rows.map((row) => ({ row, session, who: authors.agent(session, label) }));
  });
  return (await Promise.all(found)).flat().sort((one, other) => other.row.time - one.row.time).slice(0, PROMPTS);
}, 1000);

/** What a prompt is called. */
const textOf = ({ row }: Prompt) => shown(row.text ?? row.label ?? "no text is known");

/** The prompts, each with a way back. `stay`: shows what an undo has left. */
export function Prompts({ stay }: { stay: (files: readonly UndoneFile[]) => void }) {
  const [asked, setAsked] = useState<Prompt>();
  const { value: found, error } = prompts.value;
  const known = sessions.value.value;
  const state = known?.map(({ session, lastActive }) => `${session} ${lastActive}`).join(" ");
  useEffect(() => (known ? prompts.poke() : undefined), [state]);
  return (
    <>
      <details class="history">
        <summary>Go back to a prompt <span class="soft">{found?.length}</span></summary>
        {error && <p class="wrong" role="alert">{error}</p>}
        {found?.length === 0 && <p class="soft">No prompt is on record: hooks report them, and so does <code>checkpoint/create</code>.</p>}
        {found && found.length > 0 && (
          <ul tabIndex={0} aria-label="Prompts, the newest first">
            {found.map((prompt) => (
              <li key={prompt.row.checkpoint}>
                <span class="soft">{ago(prompt.row.time, now.value)}</span>
                <Badge who={prompt.who} />
                <span class="what" title={`${prompt.row.checkpoint}, ${exact(prompt.row.time)}: ${textOf(prompt)}`}>{textOf(prompt)}</span>
                <button type="button" class="quiet" aria-label={`Go back to ${prompt.row.checkpoint}`} onClick={() => setAsked(prompt)}>Go back…</button>
              </li>
            ))}
          </ul>
        )}
      </details>
      {asked && <Rewind prompt={asked} stay={stay} close={() => setAsked(undefined)} />}
    </>
  );
}

/** Shows the lines that would be undone, and undoes them. */
function Rewind({ prompt, stay, close }: { prompt: Prompt; stay: (files: readonly UndoneFile[]) => void; close: () => void }) {
  const [whose, setWhose] = useState<"session" | "all">("session");
  const [planned, setPlanned] = useState<Undone>();
  const [error, setError] = useState<string>();
  // The session is in a turn: the user has to want it all the same.
  const [isBusy, setBusy] = useState(false);
  const [looks, setLooks] = useState(0);
  const ask: Undo = { since: prompt.row.checkpoint, session: whose === "session" ? prompt.session : null };
  useEffect(() => {
    let over = false;
    setPlanned(undefined);
    setError(undefined);
    setBusy(false);
    call("undo", { ...ask, dryRun: true }).then(
      (found) => !over && setPlanned(found),
      (wrong: unknown) => !over && setError(sentence(wrong)),
    );
    return () => void (over = true);
  }, [whose, looks]);
  const undo = async () => {
    try {
      // What was shown and nothing else: the daemon refuses if it is no longer the same.
      const done = await call("undo", { ...ask, now: isBusy, plan: planned?.plan ?? null });
      close();
      tell(done);
      stay(done.files.filter(hasLeft));
      review.poke();
      undos.poke();
    } catch (wrong) {
      const code = wrong instanceof ApiError ? wrong.code : "";
      setError(code === "conflict" ? "Something has changed since. This is what would be undone now." : sentence(wrong));
      if (code === "busy") setBusy(true);
      else if (code === "conflict") setPlanned(await call("undo", { ...ask, dryRun: true }).catch(() => undefined));
    }
  };
  const changed = planned?.files.filter((file) => !["unchanged", "left", "conflict", "notKept"].includes(file.outcome)) ?? [];
  const others = planned?.files.map((file) => ({ ...file, left: file.left?.filter(({ cause }) => cause !== "likely") ?? [] })).filter((file) => hasLeft(file) && (file.left.length > 0 || file.conflicts?.length || file.outcome === "notKept")) ?? [];
  return (
    <Dialog title={`Go back to before ${prompt.row.checkpoint}?`} onClose={close}>
      <p><Badge who={prompt.who} named /> <span class="soft">{exact(prompt.row.time)}:</span> {textOf(prompt)}</p>
      <Choices legend="Whose changes" value={whose} options={[["session", `Only of ${prompt.who.name}`], ["all", "Of all agents"]]} onChange={setWhose} />
      <p class="soft">Undone is what was done since this prompt. Lines that you or others have written stay. The conversation is not taken back: the agents are told what was undone.</p>
      {error && <p class="wrong" role="alert">{error}</p>}
      {!planned && !error && <p class="soft waiting" role="status">Loading…</p>}
      {planned && changed.length === 0 && <p>There is nothing to undo.</p>}
      {changed.length > 0 && <ul class="planned" tabIndex={0} aria-label="What would be undone">{changed.map((file) => <Planned key={file.path} file={file} />)}</ul>}
      {others.length > 0 && <Stays files={others} />}
      {planned && <Whose doubts={doubtsIn(planned)} row={(command) => planned.commands?.find((row) => row.command === command)} answered={() => setLooks(looks + 1)} />}
      <p class="actions">
        <button type="button" class="primary" disabled={changed.length === 0 || connection.value !== "live"} onClick={() => void undo()}>{isBusy ? "Undo in the middle of the turn" : `Undo ${count(changed.length, "file")}`}</button>
        <button type="button" autofocus onClick={close}>Cancel</button>
      </p>
    </Dialog>
  );
}

const WILL: Partial<Record<UndoneFile["outcome"], string>> = { deleted: "is deleted", restored: "comes back", renamed: "gets its name back", partly: "is undone in part" };

/** The lines of one file that would change. */
function Planned({ file }: { file: UndoneFile }) {
  return (
    <li>
      <p><code>{shown(file.path)}</code> <span class="soft">{WILL[file.outcome] ?? count(file.hunks, "change")}{file.to ? ` ${shown(file.to)}` : ""}</span></p>
      {file.changes?.map((change) => (
        <pre key={change.start}>
          {signed("-", change.before)}
          {signed("+", change.after)}
        </pre>
      ))}
    </li>
  );
}

/** Lines with a sign before each. */
function signed(sign: "-" | "+", text: string) {
  if (text === "") return null;
  const lines = shownText(text.replace(/\n$/, "")).split("\n");
  return <span class={sign === "-" ? "minus" : "plus"}>{lines.map((line) => `${sign} ${line}\n`).join("")}</span>;
}
