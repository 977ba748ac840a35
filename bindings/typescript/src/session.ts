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

/** Who a session is, and how its daemon is reached. */
export interface SessionOptions extends LinkOptions {
  /** The agent's program. */
  agent?: Program;
  /** For a sub-agent: the session that it works for (SEEN-5). */
  parent?: string;
}

/** What a read gave. */
export interface Read {
  /** The bytes, as they entered the context. */
  bytes: Buffer;
  /** The same as text, with replacement characters where they are not UTF-8. */
  text: string;
  /** What the session's copy was worth; nothing without a daemon. */
  known: FileReadResult | undefined;
}

/** How a file is read by the daemon. */
export interface ReadTextOptions {
  /** The lines; the whole file unless told. */
  range?: LineRange;
  /** The agent's step. */
  step?: number;
  /** The text even of what is in the context already. */
  force?: boolean;
}

/** What `Session.write` did. */
export interface Written {
  /** What became of it; nothing without a daemon. */
  done: Methods["file/write"]["result"] | undefined;
}

/**
 * A session: a method for each request that is about one, and what agents do
 * most. Its connection is made again when it is lost. Where there is no daemon
 * to be had, `read`, `readText`, `write`, `edit`, `changed` and `status` go on
 * without tracking, which is said once; every other request is `noDaemon`.
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
   * Opens a session in the workspace of the current directory, or comes back to
   * it. Without a daemon it goes on without tracking.
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

  /** Opens a session over a connection that is there. */
  static async over(client: Client, id: string, options: SessionOptions = {}): Promise<Session> {
    const link = Link.over(client, { ...options, session: id }, async (again) => void (await opening(again, id, options)));
    const session = new Session(id, link);
    session.#opened = await opening(client, id, options);
    return session;
  }

  /** What was known of the session when it was opened: what changed while it was away, a warning. */
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

  /** The way to the daemon. */
  get link(): Link {
    return this.#link;
  }

  override call<M extends Method>(method: M, params: Methods[M]["params"], ask?: Ask): Promise<Methods[M]["result"]> {
    return this.#link.call(method, params, ask);
  }

  /** A file's absolute path. */
  target(path: Path): Buffer {
    return absolute(path, this.workspace.rootBytes);
  }

  /**
   * Reads a file, and records that exactly these bytes entered the context,
   * whatever the disk holds by then (SEEN-1).
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
   * Has the daemon read a file for the session. What is in the context already
   * comes without text: its `message` is to be said in its place.
   */
  async readText(path: Path, options: ReadTextOptions = {}): Promise<FileText> {
    return this.#link.orWithout(
      () => this.fileReadText({ ...named(path, this.workspace.rootBytes), ...options }),
      async () => textOf(await this.bytes(path), options.range),
    );
  }

  /** What the session's copies are worth now; of all files it knows, unless some are named. */
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

  /** What others changed since this was last asked; each change is told once (MOD-2). */
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
   * Writes a file through the daemon, unless it is something else by then than
   * the session has seen (GUARD-4), or than `base`.
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
   * Edits a file: says that the session is about to write it, lets `work` do
   * so, and commits. Where `work` throws, the edit is aborted.
   *
   * Without `work` the edit is handed out: commit or abort it, or hold it by
   * `await using`, which aborts what was not committed.
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

  /** Ends the session: its open edits are aborted. `forget` removes what it knew. */
  async close(options: { forget?: boolean } = {}): Promise<void> {
    try {
      if (this.#link.isUp) await this.sessionClose({ forget: options.forget ?? false });
    } finally {
      this.#link.close();
    }
  }

  /** Lets go of the connection; the session stays open for whoever comes back to it. */
  leave(): void {
    this.#link.close();
  }

  /** A file's bytes on disk. */
  async bytes(path: Path): Promise<Buffer> {
    try {
      return await readFile(this.target(path));
    } catch (error) {
      throw systemError(error, path, "read");
    }
  }

  /** Writes without a daemon. */
  async plainly(path: Path, content: string | Uint8Array): Promise<void> {
    try {
      await writeFile(this.target(path), content);
    } catch (error) {
      throw systemError(error, path, "write");
    }
  }
}

/** Whether an outage is known to have left a write undone. */
export function neverAsked(outage: TouchmarkError): boolean {
  return outage.code !== "connectionClosed" && outage.code !== "deadline" && outage.code !== "protocol";
}

/** Bytes as a request carries them. */
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

/** A text as the daemon would tell it the first time. */
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
