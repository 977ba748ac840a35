// An open edit of one file.

import { TouchmarkError } from "./errors.js";
import type { Change, CommittedFile, FileState, FileWritten } from "./generated/protocol.js";
import { hashOf } from "./hash.js";
import { type Path, asText, named } from "./names.js";
import { type Session, carried, neverAsked } from "./session.js";

/** How an edit is begun. */
export interface EditOptions {
  /** Refuse a file that was not read (GUARD-4); true unless told. */
  requireRead?: boolean;
  /** Overrides `notRead` and `stale`; what is overwritten unseen is kept. */
  force?: boolean;
  /** Wait so long, in milliseconds, for another session's edit to end (GUARD-5). */
  waitMs?: number;
  /** How long the edit may stay open, in milliseconds. */
  ttlMs?: number;
  /** The tool's name. */
  tool?: string;
  /** The agent's step. */
  step?: number;
}

/** What became of an edit. */
export interface Committed {
  /** The file; nothing without a daemon. */
  file: CommittedFile | undefined;
  /** What others did to it meanwhile. */
  changes: Change[];
}

/** The same, with what the work gave. */
export interface EditDone<T> extends Committed {
  value: T;
}

/** `using` calls what this names; older runtimes have no name for it. */
const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/**
 * The session is about to write a file. It ends by `commit` or `abort`, and with
 * the connection, should this process die (ATTR-9).
 */
export class Edit {
  /** The file. */
  readonly path: Path;
  /** The file as it was when the edit began; nothing without a daemon. */
  readonly before: FileState | undefined;
  readonly #session: Session;
  readonly #options: EditOptions;
  /** The daemon's name of the edit; taken by whatever ends it. */
  #id: string | undefined;
  /** The content that the next write is computed from. */
  #base: string | undefined;
  #written: string | undefined;
  /** What became of it by guarded writes: the last that changed something. */
  #done: FileWritten | undefined;

  private constructor(session: Session, path: Path, options: EditOptions, id?: string, before?: FileState) {
    this.#session = session;
    this.path = path;
    this.#options = options;
    this.#id = id;
    this.before = before;
    this.#base = before?.hash ?? undefined;
  }

  /** Says that a session is about to write a file. */
  static async begin(session: Session, path: Path, options: EditOptions = {}): Promise<Edit> {
    const files = [named(path, session.workspace.rootBytes)];
    return session.link.orWithout(
      async () => {
        const begun = await session.editBegin({ files, bind: true, ...options });
        return new Edit(session, path, options, begun.edit, begun.files[0]);
      },
      () => new Edit(session, path, options),
    );
  }

  /** Whether the daemon knows of it. */
  get isTracked(): boolean {
    return this.before !== undefined;
  }

  /** The file's bytes now; the next write is computed from them. */
  async bytes(): Promise<Buffer> {
    const { bytes } = await this.#session.read(this.path);
    this.#base = hashOf(bytes);
    return bytes;
  }

  /** The same as text. A file that is not UTF-8 is an error: take its bytes. */
  async text(): Promise<string> {
    const text = asText(await this.bytes());
    if (text === undefined) {
      throw new TouchmarkError("io", `${String(this.path)}: not UTF-8`, { data: { hint: "take its `bytes`" } });
    }
    return text;
  }

  /**
   * Writes the whole file, unless it is something else by then than the edit
   * began with, or was last read in it: `conflict` (GUARD-1).
   */
  async write(content: string | Uint8Array): Promise<void> {
    if (this.isTracked) {
      const { force, requireRead, step } = this.#options;
      const done = await this.#session.fileWrite({
        ...named(this.path, this.#session.workspace.rootBytes),
        ...carried(content),
        base: this.#base ?? null,
        force: force ?? false,
        requireRead: requireRead ?? null,
        step: step ?? null,
      });
      if (done.outcome !== "unchanged" || this.#done === undefined) this.#done = done;
    } else {
      await this.#writeUntracked(content);
    }
    this.#base = this.#written = hashOf(content);
  }

  /** Without a daemon: still not over what somebody has written since it was read. */
  async #writeUntracked(content: string | Uint8Array): Promise<void> {
    if (this.#base !== undefined) {
      const now = await this.#session.bytes(this.path).then(hashOf, () => undefined);
      if (now !== this.#base) {
        throw new TouchmarkError("conflict", `${String(this.path)}: somebody has changed it`, {
          data: { path: String(this.path), hash: now ?? null, expected: this.#base },
        });
      }
    }
    await this.#session.plainly(this.path, content);
  }

  /**
   * The edit is done. What `write` wrote is claimed by its hash; where it was
   * written otherwise, what is found is the session's (ATTR-4).
   */
  async commit(): Promise<Committed> {
    const edit = this.#take();
    if (edit === undefined) return { file: undefined, changes: [] };
    const file = named(this.path, this.#session.workspace.rootBytes);
    try {
      const done = await this.#session.editCommit({ edit, files: [{ ...file, hash: this.#written ?? null }] });
      return { file: this.#outcome(done.files[0]), changes: done.changes };
    } catch (error) {
      // A guarded write declares itself: its mark may end before it.
      const spoken = this.#written !== undefined && error instanceof TouchmarkError;
      if (spoken && (error.code === "unknownEdit" || (error.isOutage && !neverAsked(error)))) {
        return { file: this.#outcome(undefined), changes: [] };
      }
      throw error;
    }
  }

  /** A guarded write is an edit of its own: to the mark around it nothing is left. */
  #outcome(file: CommittedFile | undefined): CommittedFile | undefined {
    const written = this.#done;
    const path = file?.path ?? this.before?.path;
    if (written === undefined || path === undefined || (file !== undefined && file.outcome !== "unchanged")) return file;
    return { ...file, path, outcome: written.outcome, version: written.version ?? null };
  }

  /** Nothing of it counts. An edit that has ended stays so. */
  async abort(): Promise<void> {
    const edit = this.#take();
    if (edit === undefined) return;
    // A daemon that does not hear it ends the edit by itself.
    await this.#session.editAbort({ edit }).catch(() => undefined);
  }

  async [asyncDispose](): Promise<void> {
    await this.abort();
  }

  #take(): string | undefined {
    const id = this.#id;
    this.#id = undefined;
    return id;
  }
}
