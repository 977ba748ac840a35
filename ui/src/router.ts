// The address after `#` says which view is shown, so that reload and back work.

import { signal } from "@preact/signals";

export interface Route {
  view: "now" | "review" | "files" | "file" | "day";
  /** What follows the view: a file, a day. */
  rest: string;
  query: URLSearchParams;
}

const VIEWS = ["now", "review", "files", "file", "day"] as const;

/** Reads an address such as `#/file/src%2Fa.rs?to=1:17`. What it does not know is the first view. */
export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const cut = path.indexOf("/");
  const name = cut < 0 ? path : path.slice(0, cut);
  const view = VIEWS.find((known) => known === name) ?? "now";
  let rest = cut < 0 ? "" : path.slice(cut + 1);
  try {
    rest = decodeURIComponent(rest);
  } catch {
    rest = "";
  }
  return { view: view === "file" && rest === "" ? "files" : view, rest, query: new URLSearchParams(query) };
}

/** Writes an address. Values that are undefined are left out. */
export function address(view: Route["view"], rest = "", query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined);
  const after = given.length > 0 ? `?${new URLSearchParams(given)}` : "";
  return `#/${view}${rest === "" ? "" : `/${encodeURIComponent(rest)}`}${after}`;
}

export const route = signal<Route>(parse(typeof location === "undefined" ? "" : location.hash));

export function listen(): void {
  window.addEventListener("hashchange", () => (route.value = parse(location.hash)));
}

/** Goes to an address; `replace` leaves no entry for the back button. */
export function go(to: string, replace = false): void {
  if (to === location.hash) return;
  if (replace) {
    history.replaceState(null, "", to);
    route.value = parse(to);
  } else {
    location.hash = to;
  }
}
