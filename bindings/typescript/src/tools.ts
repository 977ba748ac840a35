// Wraps an agent's tools. A repeated call is answered with the earlier result
// as long as every file that the result depends on has the same content as
// then.

import { TouchmarkError } from "./errors.js";
import type { CallChecked, FileText, LineRange } from "./generated/protocol.js";
import { type Path, listed } from "./names.js";
import type { Session } from "./session.js";

/** How calls are compared. */
export interface Rules {
  /** Whether calls are compared with earlier ones; default true. */
  enabled?: boolean;
  /**
   * Whether the earlier result also answers a call that is only similar, for
   * example another call about the same file; default false.
   */
  similar?: boolean;
}

/** The answer to give for a call of a tool. */
export class Answer<T = unknown> {
  /** The tool's result, from this call or an earlier one. */
  readonly result: T;
  /** Whether the tool did not run, because the result is an earlier call's. */
  readonly cached: boolean;
  /** One sentence for the model, to put before a result that is not new. */
  readonly message: string | undefined;

  constructor(result: T, cached = false, message?: string | null) {
    this.result = result;
    this.cached = cached;
    this.message = message ?? undefined;
  }

  /** The result as text, preceded by the message. */
  get text(): string {
    const text = typeof this.result === "string" ? this.result : (JSON.stringify(this.result) ?? "");
    return this.message === undefined ? text : `${this.message}\n\n${text}`;
  }
}

/**
 * A result, with the files that it depends on in addition to those that the
 * arguments name.
 */
export class Resting<T> {
  readonly result: T;
  readonly paths: Path[];

  constructor(result: T, paths: Path[]) {
    this.result = result;
    this.paths = paths;
  }
}

/** Returns a tool's result with the files that it depends on. */
export function restsOn<T>(result: T, ...paths: Path[]): Resting<T> {
  return new Resting(result, paths);
}

/** A tool: any function of its arguments. */
export type Tool<A, T> = (args: A) => T | Resting<T> | Promise<T | Resting<T>>;

/** A wrapped tool. */
export type Wrapped<A, T> = (args: A) => Promise<Answer<T>>;

/** Wrapped tools by name. */
export type AllWrapped<Named> = {
  [Name in keyof Named]: Named[Name] extends Tool<infer A, infer T> ? Wrapped<A, T> : never;
};

/**
 * The tools of one session. Without a daemon they run as if they were not
 * wrapped.
 */
export class Tools {
  readonly session: Session;
  readonly rules: Required<Rules>;

  constructor(session: Session, rules: Rules = {}) {
    this.session = session;
    this.rules = { enabled: rules.enabled ?? true, similar: rules.similar ?? false };
  }

  /**
   * Wraps a tool. The name selects how calls are compared (`calls.rules`), and
   * whether they are stored (`calls.never`). A failed call is not stored.
   */
  wrap<A, T>(name: string, tool: Tool<A, T>): Wrapped<A, T> {
    return async (args) => {
      if (!this.rules.enabled) return new Answer(unrested(await tool(args)).result);
      const checked = await this.#ask(() => this.session.callCheck({ tool: name, args }));
      const earlier = checked && this.#serve<T>(checked);
      if (earlier !== undefined) return earlier;
      const { result, paths } = unrested(await tool(args));
      const root = this.session.workspace.rootBytes;
      const names = paths.length > 0 ? paths.map((path) => listed(path, root)) : null;
      await this.#ask(() => this.session.callRecord({ tool: name, args, result: result ?? null, paths: names }));
      return new Answer(result);
    };
  }

  /** Wraps tools under their names. */
  wrapAll<Named extends Record<string, Tool<never, unknown>>>(tools: Named): AllWrapped<Named> {
    const all = Object.entries(tools).map(([name, tool]) => [name, this.wrap(name, tool)]);
    return Object.fromEntries(all) as AllWrapped<Named>;
  }

  /**
   * Reads a file as a tool: returns its text, or a sentence that replaces a
   * text which is already in the context.
   */
  async readFile(path: Path, range?: LineRange): Promise<Answer<string>> {
    const force = !this.rules.enabled;
    return told(await this.session.readText(path, range === undefined ? { force } : { force, range }));
  }

  /**
   * Writes a file as a tool, unless it has changed since the session saw it.
   * The session's next read of it returns the full text.
   */
  async writeFile(path: Path, content: string | Uint8Array): Promise<Answer<string>> {
    await this.session.write(path, content);
    return new Answer(`File written: ${typeof path === "string" ? path : Buffer.from(path).toString("utf8")}`);
  }

  /** Returns the earlier result if it may replace running the tool. */
  #serve<T>(checked: CallChecked): Answer<T> | undefined {
    const serves = checked.cached || (this.rules.similar && checked.duplicate === "similar");
    if (!serves || checked.result === undefined) return undefined;
    return new Answer(checked.result as T, true, checked.message);
  }

  /**
   * Sends a request about a call. An error of the daemon must not make the
   * tool's call fail.
   */
  async #ask<R>(ask: () => Promise<R>): Promise<R | undefined> {
    try {
      return await this.session.link.orWithout<R | undefined>(ask, () => undefined);
    } catch (error) {
      if (!(error instanceof TouchmarkError)) throw error;
      const notice = this.session.link.notice(error);
      if (notice !== undefined) this.session.link.say(notice);
      return undefined;
    }
  }
}

function unrested<T>(output: T | Resting<T>): Resting<T> {
  return output instanceof Resting ? output : new Resting(output, []);
}

/** Returns the answer for a read. */
function told(read: FileText): Answer<string> {
  if (read.text == null) return new Answer(read.message ?? "", true);
  const lines = [];
  if (read.message != null) lines.push(read.message);
  if (read.encoding === "base64") lines.push("[not UTF-8: base64]");
  if (read.truncated) lines.push(`[${read.range?.end ?? 0} of ${read.lineCount} lines; read the rest by range]`);
  return new Answer(read.text, false, lines.length > 0 ? lines.join("\n") : null);
}
