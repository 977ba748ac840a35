// An open edit of one file.

import { TouchmarkError } from "./errors.js";
import type { Change, CommittedFile, FileState, FileWritten } from "./generated/protocol.js";
import { hashOf } from "./hash.js";
import { type Path, asText, named } from "./names.js";
import { type Session, carried, neverAsked } from "./session.js";

/** How to begin an edit. */
export interface EditOptions {
  /**
   * Whether to refuse a file that the session has not read (GUARD-4); default
   * true.
   */
  requireRead?: boolean;
  /**
   * Whether to proceed where `notRead` or `stale` would refuse; default false.
   * Bytes that are overwritten unseen are kept for recovery.
   */
  force?: boolean;
  /**
   * How long to wait for another session's edit to end, in milliseconds
   * (GUARD-5); default: do not wait.
   */
  waitMs?: number;
  /** How long the edit may stay open, in milliseconds. */
  ttlMs?: number;
  /** The name of the tool that writes. */
  tool?: string;
  /** The agent's number for its current step. touchmark only stores it. */
  step?: number;
}

/** The result of an edit. */
export interface Committed {
  /** The committed file; undefined without a daemon. */
  file: CommittedFile | undefined;
  /** The changes that others made to the file during the edit. */
  changes: Change[];
}

/** The result of an edit, with the value that `work` returned. */
export interface EditDone<T> extends Committed {
  value: T;
}

/** The symbol that `await using` calls. Older runtimes do not define it. */
const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/**
 * An open edit: the session is about to write a file. End it by `commit` or
 * `abort`. If this process exits, the daemon ends it with the connection
 * (ATTR-9).
 */
export class Edit {
  /** The file. */
  readonly path: Path;
  /** The file's state when the edit began; undefined without a daemon. */
  readonly before: FileState | undefined;
  readonly #session: Session;
  readonly #options: EditOptions;
  /** The edit's id; undefined after the edit was ended. */
  #id: string | undefined;
  /** The hash of the content that the next write is computed from. */
  #base: string | undefined;
  #written: string | undefined;
  /** The result of the last guarded write that changed something. */
  #done: FileWritten | undefined;

  private constructor(session: Session, path: Path, options: EditOptions, id?: string, before?: FileState) {
    this.#session = session;
    this.path = path;
    this.#options = options;
    this.#id = id;
    this.before = before;
    this.#base = before?.hash ?? undefined;
  }

  /** Begins an edit: declares that a session is about to write a file. */
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

  /** Whether a daemon tracks the edit. */
  get isTracked(): boolean {
    return this.before !== undefined;
  }

  /** Returns the file's current bytes. The next write is computed from them. */
  async bytes(): Promise<Buffer> {
    const { bytes } = await this.#session.read(this.path);
    this.#base = hashOf(bytes);
    return bytes;
  }

  /**
   * Returns the file's current text. Throws if it is not UTF-8; use `bytes`
   * then.
   */
  async text(): Promise<string> {
    const text = asText(await this.bytes());
    if (text === undefined) {
      throw new TouchmarkError("io", `${String(this.path)}: not UTF-8`, { data: { hint: "take its `bytes`" } });
    }
    return text;
  }

  /**
   * Writes the whole file. Throws `conflict` if its content is not the one with
   * which the edit began, or that was last read in the edit (GUARD-1).
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

  /**
   * Writes the file without a daemon. Throws `conflict` if it has changed since
   * it was read.
   */
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
   * Commits the edit. The content that `write` wrote is claimed by its hash. If
   * the file was written otherwise, the content found is the session's
   * (ATTR-4).
   */
  async commit(): Promise<Committed> {
    const edit = this.#take();
    if (edit === undefined) return { file: undefined, changes: [] };
    const file = named(this.path, this.#session.workspace.rootBytes);
    try {
      const done = await this.#session.editCommit({ edit, files: [{ ...file, hash: this.#written ?? null }] });
      return { file: this.#outcome(done.files[0]), changes: done.changes };
    } catch (error) {
      // A guarded write declares itself, so its mark may have ended before the
      // commit.
      const spoken = this.#written !== undefined && error instanceof TouchmarkError;
      if (spoken && (error.code === "unknownEdit" || (error.isOutage && !neverAsked(error)))) {
        return { file: this.#outcome(undefined), changes: [] };
      }
      throw error;
    }
  }

  /**
   * Returns the result of the guarded write if the commit found no change. The
   * guarded write has its own edit, so the mark around it finds none.
   */
  #outcome(file: CommittedFile | undefined): CommittedFile | undefined {
    const written = this.#done;
    const path = file?.path ?? this.before?.path;
    if (written === undefined || path === undefined || (file !== undefined && file.outcome !== "unchanged")) return file;
    return { ...file, path, outcome: written.outcome, version: written.version ?? null };
  }

  /**
   * Aborts the edit: none of its writes is the session's. Has no effect on an
   * edit that has ended.
   */
  async abort(): Promise<void> {
    const edit = this.#take();
    if (edit === undefined) return;
    // If the daemon does not receive this, it ends the edit with the
    // connection.
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
