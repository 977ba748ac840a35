// Comments to agents on their changes, and who has received them.

import { refOf } from "../names.js";
import type { Comment } from "../protocol.js";
import { ago } from "../times.js";
import type { Authors } from "./authors.js";

/** The key of the change that a comment is on, as its row in the queue has it. */
export const changeOf = (comment: Comment): string => `${refOf(comment)}\0${comment.id}`;

/** Whether no session has received it, so that it can be withdrawn. */
export const isWaiting = (comment: Comment): boolean => comment.to.every(({ state }) => state !== "told");

/** Who has received it, and when the others do. */
export function received({ to }: Comment, authors: Authors, now: number): string {
  return to
    .map(({ session, label, state, told }) => {
      const { name } = authors.agent(session, label);
      if (state === "told") return told == null ? `${name} received it` : `${name} received it ${ago(told, now)} ago`;
      if (state === "ended") return `waits: ${name} has ended, and receives it if it is continued`;
      if (state === "waitingForEvent") return `waits for the next event of ${name} that can carry text: its agent takes none with a prompt`;
      return `waits for the next prompt of ${name}`;
    })
    .join("; ");
}
