// What can go wrong between a client and its daemon.

/** What stands beside a daemon's error: the fields of docs/protocol.md's table. */
export interface ErrorFields {
  code?: string;
  hint?: string;
  [field: string]: unknown;
}

/** What to do about the errors that do not come from a daemon. */
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
 * Why a call gave no answer, or which error the daemon answered. `code` is a
 * stable name: the daemon's own (`stale`, `busy`, ...), or `noDaemon`,
 * `startFailed`, `deadline`, `connectionClosed`, `lagged`, `protocol`,
 * `place`, `io`.
 */
export class TouchmarkError extends Error {
  /** The error's stable name. */
  readonly code: string;
  /** What to do about it. */
  readonly hint: string;
  /** The fields that belong to the code: `path`, `changedBy`, ... */
  readonly data: ErrorFields;
  /** JSON-RPC's number, where the daemon answered the error. */
  readonly number: number | undefined;

  constructor(code: string, message: string, more: { data?: ErrorFields; number?: number; cause?: unknown } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = "TouchmarkError";
    this.code = code;
    this.data = more.data ?? {};
    this.number = more.number;
    this.hint = this.data.hint ?? HINTS[code] ?? "";
  }

  /** The error of an answer. */
  static answered(error: { code: number; message: string; data?: ErrorFields }): TouchmarkError {
    const data = error.data ?? {};
    return new TouchmarkError(data.code ?? "internalError", error.message, { data, number: error.code });
  }

  /** Another connection may succeed: the daemon went away or was never there. */
  get isDisconnected(): boolean {
    return ["noDaemon", "connectionClosed", "shuttingDown"].includes(this.code);
  }

  /** There is no daemon to be had, as opposed to one that said no. */
  get isOutage(): boolean {
    return this.isDisconnected || (this.number === undefined && ["startFailed", "deadline", "lagged", "protocol", "place"].includes(this.code));
  }
}

/** What the system's error is called: `ENOENT`, ... */
export function systemCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

/** Any error as one of ours. */
export function wrapped(error: unknown, doing: string): TouchmarkError {
  if (error instanceof TouchmarkError) return error;
  const said = error instanceof Error ? error.message : String(error);
  return new TouchmarkError("io", `${doing}: ${said}`, { cause: error });
}
