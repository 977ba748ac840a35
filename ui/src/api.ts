// Requests to the daemon, through the server of `touchmark ui`.

import type { ErrorData, Methods } from "./protocol.js";

/** The requests that may be under way at a time: browsers allow six connections to a server, one is the stream of events. */
const AT_ONCE = 4;

/** An error of the daemon, or of the way to it. */
export class ApiError extends Error {
  constructor(
    /** `noDaemon`, `notFound`, ...; `ended` if the server is gone, `forbidden` if it does not know this page. */
    readonly code: string,
    message: string,
    readonly data: ErrorData,
  ) {
    super(message);
  }

  /** What to do about it, as the daemon says it. */
  get hint(): string | undefined {
    return this.data.hint;
  }

  /** Whether nothing is wrong with the request: it may be sent again once the daemon is back. */
  get isGone(): boolean {
    return ["noDaemon", "ended", "shuttingDown", "disconnected"].includes(this.code);
  }
}

let running = 0;
const waiting: Array<() => void> = [];

async function turn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  else running++;
  try {
    return await work();
  } finally {
    // The place goes to the next in line, or is given back.
    const next = waiting.shift();
    if (next) next();
    else running--;
  }
}

interface Answer {
  result?: unknown;
  error?: { code: number | string; message: string; data?: ErrorData };
}

export function call<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]> {
  return turn(async () => {
    let answered: Response;
    try {
      answered = await fetch("/api/call", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Touchmark": "1" },
        body: JSON.stringify({ method, params }),
      });
    } catch {
      throw new ApiError("ended", "The page's server does not answer.", {});
    }
    if (answered.status === 403) throw new ApiError("forbidden", "The page's server does not know this page.", {});
    const body = (await answered.json().catch(() => ({}))) as Answer;
    if (body.error) {
      const data = body.error.data ?? {};
      throw new ApiError(data.code ?? String(body.error.code), body.error.message, data);
    }
    if (!answered.ok) throw new ApiError("http", `The page's server answered ${answered.status}.`, {});
    return body.result as Methods[M]["result"];
  });
}

export interface About {
  workspace: string;
  version: string;
  home?: string;
}

/** What the server says of itself; undefined if it does not answer. */
export async function about(): Promise<About | "forbidden" | undefined> {
  try {
    const answered = await fetch("/api/about", { headers: { "X-Touchmark": "1" } });
    if (answered.status === 403) return "forbidden";
    return answered.ok ? ((await answered.json()) as About) : undefined;
  } catch {
    return undefined;
  }
}

/** A sentence for people about anything that was thrown. */
export function sentence(error: unknown): string {
  if (error instanceof ApiError) return error.hint ? `${error.message} – ${error.hint}` : error.message;
  return error instanceof Error ? error.message : String(error);
}
