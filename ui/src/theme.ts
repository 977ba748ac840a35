// Light, dark, or as the system has it. Only this choice is remembered by the
// browser.

import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const KEY = "touchmark-theme";

function remembered(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

export const theme = signal<Theme>(remembered());

export function setTheme(next: Theme): void {
  theme.value = next;
  document.documentElement.dataset.theme = next;
  try {
    if (next === "auto") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, next);
  } catch {
    // A browser that stores nothing.
  }
}
