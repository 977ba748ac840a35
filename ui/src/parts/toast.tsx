// What was just done, with a way back. Screen readers read it out.

import { signal } from "@preact/signals";

interface Toast {
  id: number;
  text: string;
  wrong: boolean;
  action?: { text: string; run: () => void };
}

const toasts = signal<readonly Toast[]>([]);
/** What is read out and not shown. */
export const spoken = signal("");
let next = 1;

/** How long a toast stays, in milliseconds; one with an action stays longer. */
const STAYS = 6000;

export function toast(text: string, action?: Toast["action"], wrong = false): void {
  const id = next++;
  toasts.value = [...toasts.value.slice(-2), { id, text, wrong, ...(action ? { action } : {}) }];
  setTimeout(() => dismiss(id), action || wrong ? 3 * STAYS : STAYS);
}

/** Does what the newest toast offers. */
export function takeBack(): boolean {
  const newest = toasts.value.filter((one) => one.action).at(-1);
  if (!newest) return false;
  dismiss(newest.id);
  newest.action!.run();
  return true;
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts">
      <div role="status" aria-live="polite">
        {toasts.value.map(({ id, text, wrong, action }) => (
          <div key={id} class={`toast ${wrong ? "wrong" : ""}`}>
            <span>{text}</span>
            {action && <button type="button" onClick={() => { dismiss(id); action.run(); }}>{action.text}</button>}
            <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(id)}>×</button>
          </div>
        ))}
      </div>
      <div class="unseen" role="status" aria-live="polite">{spoken.value}</div>
    </div>
  );
}
