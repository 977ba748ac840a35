// The errors of the client, and those that the daemon returns.

/** The fields of a daemon's error, as listed in docs/protocol.md. */
export interface ErrorFields {
  code?: string;
  hint?: string;
  [field: string]: unknown;
}

/** The hints of the errors that do not come from a daemon, by code. */
const HINTS: Record<string, string> = {
  noDaemon: "start one with `touchmark start`",
  startFailed: "run `touchmark daemon` in the foreground to see why",
  deadline: "the daemon is stopped or very busy: look at `touchmark status`, or give it more time",
  connectionClosed: "connect again; a new daemon is started on demand",
  lagged: "read events as they come, and subscribe again with `since`",
  protocol: "update the older of client and daemon",
  place: "name another workspace or socket",
  io: "check permissions and free space, then try again",
  conflict: "read the file again; what was there is kept",
  notFound: "check the name",
};

/**
 * Why a call failed: an error of the client, or one that the daemon returned.
 * `code` is a stable name: the daemon's (`stale`, `busy`, ...), or `noDaemon`,
 * `startFailed`, `deadline`, `connectionClosed`, `lagged`, `protocol`, `place`,
 * `io`.
 */
export class TouchmarkError extends Error {
  /** The error's stable name. */
  readonly code: string;
  /** What to do about the error. */
  readonly hint: string;
  /** The fields of the error: `path`, `changedBy`, ... */
  readonly data: ErrorFields;
  /** JSON-RPC's number, if the daemon returned the error. */
  readonly number: number | undefined;

  constructor(code: string, message: string, more: { data?: ErrorFields; number?: number; cause?: unknown } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = "TouchmarkError";
    this.code = code;
    this.data = more.data ?? {};
    this.number = more.number;
    this.hint = this.data.hint ?? HINTS[code] ?? "";
  }

  /** Returns the error of a daemon's answer. */
  static answered(error: { code: number; message: string; data?: ErrorFields }): TouchmarkError {
    const data = error.data ?? {};
    return new TouchmarkError(data.code ?? "internalError", error.message, { data, number: error.code });
  }

  /**
   * Whether another connection may succeed: the daemon does not run, or has
   * closed this connection.
   */
  get isDisconnected(): boolean {
    return ["noDaemon", "connectionClosed", "shuttingDown"].includes(this.code);
  }

  /**
   * Whether no daemon can be reached, as opposed to a daemon that returned an
   * error.
   */
  get isOutage(): boolean {
    return this.isDisconnected || (this.number === undefined && ["startFailed", "deadline", "lagged", "protocol", "place"].includes(this.code));
  }
}

/** Returns the name of the system's error: `ENOENT`, ... */
export function systemCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

/** Returns any error as a TouchmarkError. */
export function wrapped(error: unknown, doing: string): TouchmarkError {
  if (error instanceof TouchmarkError) return error;
  const said = error instanceof Error ? error.message : String(error);
  return new TouchmarkError("io", `${doing}: ${said}`, { cause: error });
}
