// Light, dark, or as the system has it.

import { signal } from "@preact/signals";
import { remember, remembered } from "./remembered.js";

export type Theme = "auto" | "light" | "dark";

export const theme = signal<Theme>(remembered("theme", ["auto", "light", "dark"]));

export function setTheme(next: Theme): void {
  theme.value = next;
  document.documentElement.dataset.theme = next;
  remember("theme", next);
}
