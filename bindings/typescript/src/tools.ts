// Tools of an agent that do not do twice what was done already: a repeated call
// is answered with the earlier result as long as every file it rests on holds
// what it held then.

import { TouchmarkError } from "./errors.js";
import type { CallChecked, FileText, LineRange } from "./generated/protocol.js";
import { type Path, listed } from "./names.js";
import type { Session } from "./session.js";

/** How calls are compared. */
export interface Rules {
  /** Whether they are at all; true unless told. */
  enabled?: boolean;
  /**
   * Whether a call that is merely alike (another one of the same file, say) is
   * answered with the earlier result too; false unless told.
   */
  similar?: boolean;
}

/** What is to be told in a tool's place. */
export class Answer<T = unknown> {
  /** The tool's result, of this call or of an earlier one. */
  readonly result: T;
  /** The tool did not run: the result is an earlier call's. */
  readonly cached: boolean;
  /** The line to say before a result that is not new. */
  readonly message: string | undefined;

  constructor(result: T, cached = false, message?: string | null) {
    this.result = result;
    this.cached = cached;
    this.message = message ?? undefined;
  }

  /** The result as text, with the message before it. */
  get text(): string {
    const text = typeof this.result === "string" ? this.result : (JSON.stringify(this.result) ?? "");
    return this.message === undefined ? text : `${this.message}\n\n${text}`;
  }
}

/** A result, and the files it rests on beside those that the arguments name. */
export class Resting<T> {
  readonly result: T;
  readonly paths: Path[];

  constructor(result: T, paths: Path[]) {
    this.result = result;
    this.paths = paths;
  }
}

/** Says which files a tool's result rests on. */
export function restsOn<T>(result: T, ...paths: Path[]): Resting<T> {
  return new Resting(result, paths);
}

/** A tool: any function of its arguments. */
export type Tool<A, T> = (args: A) => T | Resting<T> | Promise<T | Resting<T>>;

/** The same, wrapped. */
export type Wrapped<A, T> = (args: A) => Promise<Answer<T>>;

/** Tools by name, wrapped. */
export type AllWrapped<Named> = {
  [Name in keyof Named]: Named[Name] extends Tool<infer A, infer T> ? Wrapped<A, T> : never;
};

/** The tools of one session. Without a daemon they run as if they were not wrapped. */
export class Tools {
  readonly session: Session;
  readonly rules: Required<Rules>;

  constructor(session: Session, rules: Rules = {}) {
    this.session = session;
    this.rules = { enabled: rules.enabled ?? true, similar: rules.similar ?? false };
  }

  /**
   * Wraps a tool. Its name decides how calls are compared, and whether they are
   * kept at all (`calls.rules`, `calls.never`). A call that failed is not kept.
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

  /** Wraps tools by their names. */
  wrapAll<Named extends Record<string, Tool<never, unknown>>>(tools: Named): AllWrapped<Named> {
    const all = Object.entries(tools).map(([name, tool]) => [name, this.wrap(name, tool)]);
    return Object.fromEntries(all) as AllWrapped<Named>;
  }

  /** Reads a file as a tool does: its text, or one line in place of what is in the context already. */
  async readFile(path: Path, range?: LineRange): Promise<Answer<string>> {
    const force = !this.rules.enabled;
    return told(await this.session.readText(path, range === undefined ? { force } : { force, range }));
  }

  /** Writes a file as a tool does, guarded, as the session's. The next read of it is full. */
  async writeFile(path: Path, content: string | Uint8Array): Promise<Answer<string>> {
    await this.session.write(path, content);
    return new Answer(`File written: ${typeof path === "string" ? path : Buffer.from(path).toString("utf8")}`);
  }

  /** The earlier result, if it may stand in place of running the tool. */
  #serve<T>(checked: CallChecked): Answer<T> | undefined {
    const serves = checked.cached || (this.rules.similar && checked.duplicate === "similar");
    if (!serves || checked.result === undefined) return undefined;
    return new Answer(checked.result as T, true, checked.message);
  }

  /** Asks about a call. The tool is not to blame for what comes of that. */
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

/** A read as it is told. */
function told(read: FileText): Answer<string> {
  if (read.text == null) return new Answer(read.message ?? "", true);
  const lines = [];
  if (read.message != null) lines.push(read.message);
  if (read.encoding === "base64") lines.push("[not UTF-8: base64]");
  if (read.truncated) lines.push(`[${read.range?.end ?? 0} of ${read.lineCount} lines; read the rest by range]`);
  return new Answer(read.text, false, lines.length > 0 ? lines.join("\n") : null);
}
