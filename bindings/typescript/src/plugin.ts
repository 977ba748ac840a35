// What the plug-ins for agents have in common: they send what happens to the
// daemon of a file's workspace (`hook/event`) and return what its answer says;
// the daemon has the rules. A plug-in never blocks its agent: after 150 ms,
// without a daemon, or on an error, it does nothing.

import { dirname, resolve } from "node:path";

import type { Connection } from "./connection.js";
import { TouchmarkError, systemCode } from "./errors.js";
import { START_DEADLINE, dialWorkspace, startDaemon } from "./start.js";
import { Workspace } from "./workspace.js";

/** The default time that a hook may take, in milliseconds. */
const HOOK_DEADLINE = 150;

/**
 * How long the acknowledgement may take, in milliseconds. No hook waits for it.
 */
const ACK_DEADLINE = 1_000;

/**
 * How long to wait after a failed start before the next attempt, in
 * milliseconds.
 */
const START_AGAIN = 30_000;

/** The maximum number of sessions whose workspaces are remembered. */
const MAX_SESSIONS = 1_000;

/** The names of arguments that name a tool's file. */
const FILE_ARGUMENTS = ["filePath", "file_path", "path"];

export interface Fields {
  [name: string]: unknown;
}

/** What the daemon's answer says to do. */
export interface Wanted {
  deny?: string;
  append?: string;
  /** Confirms that `deny` or `append` was delivered. */
  delivered(): void;
}

/**
 * The connection to one workspace's daemon. It is made when needed; the daemon
 * is started in the background.
 */
class Daemon {
  readonly #agent: string;
  readonly #workspace: Workspace;
  #connection: Connection | undefined;
  #starting = false;
  #failedAt: number | undefined;

  constructor(agent: string, workspace: Workspace) {
    this.#agent = agent;
    this.#workspace = workspace;
  }

  async ask(input: Fields, until: number): Promise<Wanted> {
    const connection = await this.#dial(until);
    const answer = (await connection.call("hook/event", { agent: this.#agent, input }, left(until))) as { stdout: string; ack?: string | null };
    const said = JSON.parse(answer.stdout || "{}") as { deny?: string; append?: string };
    const ack = answer.ack;
    const delivered = () => {
      // If the acknowledgement is lost, the daemon returns the text again.
      if (ack != null) void connection.call("hook/ack", { ack }, ACK_DEADLINE).catch(() => undefined);
    };
    return { ...said, delivered };
  }

  async #dial(until: number): Promise<Connection> {
    if (this.#connection !== undefined && this.#connection.ended === undefined) return this.#connection;
    try {
      this.#connection = await dialWorkspace(this.#workspace, left(until));
      return this.#connection;
    } catch (error) {
      if (error instanceof TouchmarkError && error.isDisconnected) void this.start();
      throw error;
    }
  }

  /** Starts the daemon, if it does not run, for the next hook. */
  async start(): Promise<void> {
    const lately = this.#failedAt !== undefined && performance.now() - this.#failedAt < START_AGAIN;
    if (this.#starting || lately) return;
    this.#starting = true;
    try {
      const running = await dialWorkspace(this.#workspace, START_DEADLINE).catch((error: unknown) => {
        if (error instanceof TouchmarkError && error.isDisconnected) return startDaemon(this.#workspace);
        throw error;
      });
      // A hook may have connected meanwhile and be using that connection.
      if (this.#connection !== undefined && this.#connection.ended === undefined) running.close();
      else this.#connection = running;
    } catch {
      this.#failedAt = performance.now();
    } finally {
      this.#starting = false;
    }
  }

  close(): void {
    this.#connection?.close();
  }
}

/** The daemons of the workspaces in which one agent works. */
export class Daemons {
  readonly #agent: string;
  readonly #directory: string;
  readonly #withinMs: number;
  readonly #bySocket = new Map<string, Daemon>();
  /**
   * The daemons of each session's files. They receive the events about the
   * session.
   */
  readonly #bySession = new Map<string, Set<Daemon>>();

  /**
   * `agent` is the name in `touchmark hook AGENT`, `directory` the one in which
   * the agent works. `withinMs` is how long a hook may take, in milliseconds.
   */
  constructor(agent: string, directory: string, withinMs?: number) {
    this.#agent = agent;
    this.#directory = directory;
    this.#withinMs = withinMs ?? hookDeadline();
    // The daemon starts in parallel with the agent. The first hooks may run
    // without it.
    void this.start().catch(() => undefined);
  }

  /**
   * Sends an event to the daemon of a file's workspace or, without a file, to
   * all of the session's daemons. Returns the answers; daemons that cannot be
   * reached give none.
   */
  async tell(input: Fields, file?: string): Promise<Wanted[]> {
    try {
      return await this.#ask(input, file);
    } catch {
      return [];
    }
  }

  async #ask(input: Fields, file: string | undefined): Promise<Wanted[]> {
    const until = performance.now() + this.#withinMs;
    const session = String(input["sessionID"]);
    const here = await this.#around(file === undefined ? this.#directory : dirname(resolve(this.#directory, file)));
    const known = this.#bySession.get(session) ?? new Set();
    if (here !== undefined) known.add(here);
    this.#remember(session, known);
    // A file outside of every workspace has no daemon, so nothing is sent.
    const asked = file === undefined ? [...known] : here === undefined ? [] : [here];
    const sent = { ...input, cwd: this.#directory };
    const answers = await Promise.allSettled(asked.map((daemon) => daemon.ask(sent, until)));
    return answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
  }

  /**
   * Starts the daemon of the agent's directory, so that it runs before the
   * first hook.
   */
  async start(): Promise<void> {
    await (await this.#around(this.#directory))?.start();
  }

  close(): void {
    for (const daemon of this.#bySocket.values()) daemon.close();
  }

  #remember(session: string, known: Set<Daemon>): void {
    this.#bySession.delete(session);
    this.#bySession.set(session, known);
    const [oldest] = this.#bySession.keys();
    if (this.#bySession.size > MAX_SESSIONS && oldest !== undefined) this.#bySession.delete(oldest);
  }

  async #around(directory: string): Promise<Daemon | undefined> {
    const workspace = await existing(directory);
    if (workspace === undefined) return undefined;
    const daemon = this.#bySocket.get(workspace.socket) ?? new Daemon(this.#agent, workspace);
    this.#bySocket.set(workspace.socket, daemon);
    return daemon;
  }
}

/** Returns the workspace around a directory that may not exist yet. */
async function existing(directory: string): Promise<Workspace | undefined> {
  for (let at = directory; ; at = dirname(at)) {
    try {
      return await Workspace.around(at);
    } catch (error) {
      const missing = ["ENOENT", "ENOTDIR"].includes(systemCode((error as { cause?: unknown }).cause));
      if (!missing || at === dirname(at)) throw error;
    }
  }
}

/**
 * Returns how long a hook may take, in milliseconds: as for `touchmark hook`,
 * `TOUCHMARK_HOOK_MS` may say so.
 */
function hookDeadline(): number {
  const said = Number(process.env["TOUCHMARK_HOOK_MS"]);
  return Number.isFinite(said) && said > 0 ? said : HOOK_DEADLINE;
}

/** Returns the reason of the first answer that denies; undefined if none does. */
export function denial(wanted: Wanted[]): Wanted & { deny: string } | undefined {
  return wanted.find((one): one is Wanted & { deny: string } => typeof one.deny === "string" && one.deny !== "");
}

function left(until: number): number {
  return Math.max(1, until - performance.now());
}

/** Returns the file that a tool's arguments name. */
export function fileOf(args: unknown): string | undefined {
  if (typeof args !== "object" || args === null) return undefined;
  const named = FILE_ARGUMENTS.map((name) => (args as Fields)[name]);
  return named.find((name): name is string => typeof name === "string" && name !== "");
}
