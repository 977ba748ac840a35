// The question whose a change is that appeared while a command ran (UNDO-7).

import { useState } from "preact/hooks";
import { call, sentence } from "../../api.js";
import { review } from "../../live.js";
import { claims, commandShown, type Doubt } from "../../model/doubts.js";
import { shown, shownText } from "../../names.js";
import { Counts } from "../../parts/basics.js";
import { toast } from "../../parts/toast.js";
import type { CommandRow } from "../../protocol.js";

/** Lines and places that a question shows. */
const LINES = 4;
const PLACES = 5;

interface Props {
  doubts: readonly Doubt[];
  row: (command: string) => CommandRow | undefined;
  /** An answer was recorded. */
  answered: () => void;
}

/** Asks about each command. An answer is recorded immediately; without one the change stays. */
export function Whose({ doubts, row, answered }: Props) {
  const [busy, setBusy] = useState(false);
  const answer = async (doubt: Doubt, by: "session" | "user") => {
    setBusy(true);
    try {
      for (const claim of claims(doubt, by)) await call("claim", claim);
      answered();
    } catch (wrong) {
      toast(sentence(wrong), undefined, true);
    }
    setBusy(false);
    review.poke();
  };
  if (doubts.length === 0) return null;
  return (
    <section class="whose" aria-label="Whose it is">
      <p>The following appeared while a command ran. The command may have written it, or you may have saved it in that moment. It stays unless you say that it is the command&rsquo;s.</p>
      {doubts.map((doubt) => (
        <div key={doubt.command ?? ""} class="doubt">
          <p class="doubt-head">
            <strong>{doubt.command ? shown(commandShown(doubt.command, row(doubt.command))) : "A command"}</strong>
            <span class="spread" />
            <button type="button" disabled={busy || !doubt.session} onClick={() => void answer(doubt, "session")}>The command&rsquo;s</button>
            <button type="button" disabled={busy} onClick={() => void answer(doubt, "user")}>Mine</button>
          </p>
          <ul>
            {doubt.places.slice(0, PLACES).map((place, index) => (
              <li key={index}>
                <code>{shown(place.path)}</code>{place.lines ? ` line ${place.lines.start}` : ""} <Counts added={place.added} removed={place.removed} />
                <pre tabIndex={0}>{shownText(place.text.split("\n").slice(0, LINES).join("\n"))}</pre>
              </li>
            ))}
          </ul>
          {doubt.places.length > PLACES && <p class="soft">and {doubt.places.length - PLACES} more</p>}
        </div>
      ))}
    </section>
  );
}
