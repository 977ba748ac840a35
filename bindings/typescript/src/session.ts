// One agent conversation or task.

import { readFile, writeFile } from "node:fs/promises";

import type { Client } from "./client.js";
import { Edit, type EditDone, type EditOptions } from "./edit.js";
import { TouchmarkError, wrapped } from "./errors.js";
import type {
  Change,
  FileReadResult,
  FileState,
  FileText,
  LineRange,
  Methods,
  Program,
  SessionOpened,
} from "./generated/protocol.js";
import { type Ask, type Method, SessionRequests } from "./generated/requests.js";
import { hashOf } from "./hash.js";
import { Link, type LinkOptions } from "./link.js";
import { type Path, absolute, asText, listed, named } from "./names.js";
import type { Workspace } from "./workspace.js";

/** The agent of a session, and how to reach the daemon. */
export interface SessionOptions extends LinkOptions {
  /** The agent's program. */
  agent?: Program;
  /** For a sub-agent: the session that started it (SEEN-5). */
  parent?: string;
}

/** The result of a read. */
export interface Read {
  /** The bytes, as they entered the context. */
  bytes: Buffer;
  /** The bytes as text, with replacement characters if they are not UTF-8. */
  text: string;
  /** How the read relates to earlier ones; undefined without a daemon. */
  known: FileReadResult | undefined;
}

/** How to read a file through the daemon. */
export interface ReadTextOptions {
  /** The lines to read; default: the whole file. */
  range?: LineRange;
  /** The agent's number for its current step. touchmark only stores it. */
  step?: number;
  /**
   * Whether to return the text even if it is already in the context; default
   * false.
   */
  force?: boolean;
}

/** The result of `Session.write`. */
export interface Written {
  /** The daemon's answer; undefined without a daemon. */
  done: Methods["file/write"]["result"] | undefined;
}

/**
 * A session: a method for each request of a session, and the operations that
 * agents use most. It reconnects when the connection was lost. If no daemon can
 * be reached, `read`, `readText`, `write`, `edit`, `changed` and `status`
 * continue without tracking, which is reported once; every other request throws
 * `noDaemon`.
 */
export class Session extends SessionRequests {
  override readonly id: string;
  readonly #link: Link;
  #opened: SessionOpened | undefined;

  private constructor(id: string, link: Link) {
    super();
    this.id = id;
    this.#link = link;
  }

  /**
   * Opens or reopens a session in the workspace of the current directory.
   * Without a daemon the session continues without tracking.
   */
  static async open(id: string, options: SessionOptions = {}): Promise<Session> {
    let session: Session | undefined;
    const link = await Link.to({ ...options, session: id }, async (client) => {
      const opened = await opening(client, id, options);
      if (session !== undefined) session.#opened ??= opened;
    });
    session = new Session(id, link);
    await link.orWithout(async () => void (await link.client()), () => undefined);
    return session;
  }

  /** Opens or reopens a session over an open connection. */
  static async over(client: Client, id: string, options: SessionOptions = {}): Promise<Session> {
    const link = Link.over(client, { ...options, session: id }, async (again) => void (await opening(again, id, options)));
    const session = new Session(id, link);
    session.#opened = await opening(client, id, options);
    return session;
  }

  /**
   * The session's state when it was opened: what changed while it was away, and
   * a pending warning.
   */
  get opened(): SessionOpened | undefined {
    return this.#opened;
  }

  /** Whether a daemon answers, as far as is known. */
  get isTracked(): boolean {
    return this.#link.isUp;
  }

  /** The workspace. */
  get workspace(): Workspace {
    return this.#link.workspace;
  }

  /** The session's connection to the daemon. */
  get link(): Link {
    return this.#link;
  }

  override call<M extends Method>(method: M, params: Methods[M]["params"], ask?: Ask): Promise<Methods[M]["result"]> {
    return this.#link.call(method, params, ask);
  }

  /** Returns a file's absolute path. */
  target(path: Path): Buffer {
    return absolute(path, this.workspace.rootBytes);
  }

  /**
   * Reads a file, and records that exactly these bytes entered the context,
   * even if the file has changed since (SEEN-1).
   */
  async read(path: Path, options: { step?: number } = {}): Promise<Read> {
    const bytes = await this.bytes(path);
    const hash = hashOf(bytes);
    const known = await this.#link.orWithout<FileReadResult | undefined>(
      () => this.fileRead({ ...named(path, this.workspace.rootBytes), hash, step: options.step ?? null }),
      () => undefined,
    );
    return { bytes, text: asText(bytes) ?? bytes.toString("utf8"), known };
  }

  /**
   * Reads a file through the daemon and records the read. A text that is
   * already in the context is not returned; `message` replaces it.
   */
  async readText(path: Path, options: ReadTextOptions = {}): Promise<FileText> {
    return this.#link.orWithout(
      () => this.fileReadText({ ...named(path, this.workspace.rootBytes), ...options }),
      async () => textOf(await this.bytes(path), options.range),
    );
  }

  /**
   * Returns the state of the session's copies of these files; default: of all
   * files that it tracks.
   */
  async status(paths?: Path[]): Promise<FileState[]> {
    const names = paths?.map((path) => listed(path, this.workspace.rootBytes)) ?? null;
    return this.#link.orWithout(async () => {
      const files: FileState[] = [];
      for (let cursor: string | null = null; ; ) {
        const answer: Methods["file/status"]["result"] = await this.fileStatus({ paths: names, cursor });
        files.push(...answer.files);
        cursor = answer.more ?? null;
        if (cursor === null) return files;
      }
    }, () => []);
  }

  /**
   * Returns what others have changed since the last call. Each change is
   * returned once (MOD-2).
   */
  async changed(): Promise<Change[]> {
    return this.#link.orWithout(async () => {
      const changes: Change[] = [];
      for (;;) {
        const answer = await this.modifiedTake();
        changes.push(...answer.changes);
        if (answer.more !== true) return changes;
      }
    }, () => []);
  }

  /**
   * Writes a file through the daemon, unless its content differs from what the
   * session saw last, or from `base` (GUARD-4).
   */
  async write(path: Path, content: string | Uint8Array, options: { base?: string; createDirectories?: boolean; step?: number } = {}): Promise<Written> {
    return this.#link.orWithout<Written>(
      async () => ({ done: await this.fileWrite({ ...named(path, this.workspace.rootBytes), ...carried(content), ...options }) }),
      async (outage) => {
        if (!neverAsked(outage)) throw outage;
        await this.plainly(path, content);
        return { done: undefined };
      },
    );
  }

  /**
   * Edits a file: begins an edit, runs `work`, and commits. If `work` throws,
   * the edit is aborted.
   *
   * Without `work` the edit is returned: commit or abort it, or declare it with
   * `await using`, which aborts it if it was not committed.
   */
  edit(path: Path, options?: EditOptions): Promise<Edit>;
  edit<T>(path: Path, work: (file: Edit) => T | Promise<T>, options?: EditOptions): Promise<EditDone<T>>;
  async edit<T>(path: Path, work?: EditOptions | ((file: Edit) => T | Promise<T>), options?: EditOptions): Promise<Edit | EditDone<T>> {
    if (typeof work !== "function") return Edit.begin(this, path, work);
    const edit = await Edit.begin(this, path, options);
    let value: T;
    try {
      value = await work(edit);
    } catch (error) {
      await edit.abort();
      throw error;
    }
    return { value, ...(await edit.commit()) };
  }

  /**
   * Closes the session. Its open edits are aborted. `forget` also removes what
   * it knew.
   */
  async close(options: { forget?: boolean } = {}): Promise<void> {
    try {
      if (this.#link.isUp) await this.sessionClose({ forget: options.forget ?? false });
    } finally {
      this.#link.close();
    }
  }

  /** Closes the connection. The session stays open and can be reopened. */
  leave(): void {
    this.#link.close();
  }

  /** Returns a file's bytes on disk. */
  async bytes(path: Path): Promise<Buffer> {
    try {
      return await readFile(this.target(path));
    } catch (error) {
      throw systemError(error, path, "read");
    }
  }

  /** Writes a file without a daemon. */
  async plainly(path: Path, content: string | Uint8Array): Promise<void> {
    try {
      await writeFile(this.target(path), content);
    } catch (error) {
      throw systemError(error, path, "write");
    }
  }
}

/**
 * Returns whether an outage is known to have happened before the daemon could
 * carry out a write.
 */
export function neverAsked(outage: TouchmarkError): boolean {
  return outage.code !== "connectionClosed" && outage.code !== "deadline" && outage.code !== "protocol";
}

/** Returns a content as the parameters of a request. */
export function carried(content: string | Uint8Array): { text: string } | { base64: string } {
  const text = typeof content === "string" ? content : asText(content);
  return text === undefined ? { base64: Buffer.from(content).toString("base64") } : { text };
}

function opening(client: Client, session: string, { agent, parent }: SessionOptions): Promise<SessionOpened> {
  return client.sessionOpen({ session, agent: agent ?? null, parent: parent ?? null });
}

function systemError(error: unknown, path: Path, doing: string): TouchmarkError {
  const name = String(typeof path === "string" ? path : Buffer.from(path));
  if ((error as { code?: string }).code === "ENOENT") {
    return new TouchmarkError("notFound", `${name}: there is no such file`, { cause: error });
  }
  return wrapped(error, `${doing} ${name}`);
}

/** Returns a text as the daemon would for a first read. */
function textOf(bytes: Buffer, range: LineRange | undefined): FileText {
  const whole = asText(bytes);
  const lines = (whole ?? "").split(/(?<=\n)/).filter((line) => line !== "");
  const [start, end] = [range?.start ?? 1, Math.min(range?.end ?? lines.length, lines.length)];
  const text = whole === undefined ? bytes.toString("base64") : lines.slice(start - 1, end).join("");
  return {
    verdict: "first",
    text,
    hash: hashOf(bytes),
    lineCount: lines.length,
    truncated: false,
    encoding: whole === undefined ? "base64" : "utf8",
    ...(end >= start ? { range: { start, end } } : {}),
  };
}
