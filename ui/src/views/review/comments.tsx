// Comments to agents: on the change that is shown, and all of them.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { now } from "../../live.js";
import { authors } from "../../model/authors.js";
import { changeOf, isWaiting, received } from "../../model/comments.js";
import type { Item } from "../../model/queue.js";
import { refOf, refShown, shownText } from "../../names.js";
import type { Comment } from "../../protocol.js";

/** The most characters of a comment; the daemon counts bytes. */
const MOST = 1000;

/** Writes a comment on a change; an empty text withdraws it. */
export type Write = (on: Pick<Comment, "path" | "uri" | "id">, text: string) => void;

function One({ comment, isNamed, off, write }: { comment: Comment; isNamed: boolean; off: boolean; write: Write }) {
  return (
    <li class="comment">
      {isNamed && <code class="soft">{refShown(refOf(comment))}</code>}
      <span class="comment-text">{shownText(comment.text)}</span>
      <span class="soft">{received(comment, authors, now.value)}</span>
      {isWaiting(comment) && <button type="button" class="quiet" disabled={off} onClick={() => write(comment, "")}>Withdraw</button>}
    </li>
  );
}

/** The comments on a change, and the field for another one if it is open. */
export function OnChange({ item, all, open, off, write, close }: { item: Item; all: readonly Comment[]; open: boolean; off: boolean; write: Write; close: () => void }) {
  const own = all.filter((comment) => changeOf(comment) === item.key);
  const [text, setText] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  // Before the browser paints: nothing that is typed into the field is lost.
  useLayoutEffect(() => {
    if (!open) return;
    setText(own.find(isWaiting)?.text ?? "");
    field.current?.focus();
  }, [open, item.key]);
  if (own.length === 0 && !open) return null;
  const send = () => {
    if (text.trim() === "") return;
    write(item.kind === "hunk" ? item.hunk : item.file, text.trim());
    close();
  };
  return (
    <div class="comments">
      {own.length > 0 && <ul aria-label="Comments">{own.map((comment) => <One key={`${comment.id} ${comment.time}`} comment={comment} isNamed={false} off={off} write={write} />)}</ul>}
      {open && (
        <div class="comment-field">
          <textarea
            ref={field} rows={2} maxLength={MOST} value={text} placeholder="Why?" aria-label="A comment, which the agent receives with its next prompt"
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Escape") close();
              else if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); send(); }
            }}
          />
          <button type="button" disabled={off || text.trim() === ""} onClick={send}>Send</button>
          <button type="button" class="quiet" onClick={close}>Cancel</button>
        </div>
      )}
    </div>
  );
}

/** All comments, also those on changes that have left the queue. */
export function AllComments({ all, off, write }: { all: readonly Comment[]; off: boolean; write: Write }) {
  if (all.length === 0) return null;
  const waits = all.filter(isWaiting).length;
  return (
    <details class="history">
      <summary>Comments <span class="soft">{all.length}{waits > 0 && `, ${waits} not received yet`}</span></summary>
      <ul tabIndex={0} aria-label="Comments, the newest first">
        {[...all].reverse().slice(0, 50).map((comment) => <One key={`${comment.path} ${comment.id} ${comment.time}`} comment={comment} isNamed off={off} write={write} />)}
      </ul>
    </details>
  );
}
