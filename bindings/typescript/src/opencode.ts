// The opencode plug-in. It sends what happens to the daemon (`hook/event`)
// and does what the answer says; the daemon has the rules. The plug-in never
// blocks the agent: after 150 ms, without a daemon, or on an error, it does
// nothing.

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

interface Fields {
  [name: string]: unknown;
}

/** What the daemon's answer says to do. */
interface Wanted {
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
  readonly #workspace: Workspace;
  #connection: Connection | undefined;
  #starting = false;
  #failedAt: number | undefined;

  constructor(workspace: Workspace) {
    this.#workspace = workspace;
  }

  async ask(input: Fields, until: number): Promise<Wanted> {
    const connection = await this.#dial(until);
    const answer = (await connection.call("hook/event", { agent: "opencode", input }, left(until))) as { stdout: string; ack?: string | null };
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
class Daemons {
  readonly #directory: string;
  readonly #withinMs: number;
  readonly #bySocket = new Map<string, Daemon>();
  /**
   * The daemons of each session's files. They receive the events about the
   * session.
   */
  readonly #bySession = new Map<string, Set<Daemon>>();

  constructor(directory: string, withinMs: number) {
    this.#directory = directory;
    this.#withinMs = withinMs;
  }

  /**
   * Sends an event to the daemon of a file's workspace or, without a file, to
   * all of the session's daemons. Returns the answers; daemons that cannot be
   * reached give none.
   */
  async tell(input: Fields, file: string | undefined): Promise<Wanted[]> {
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
    const daemon = this.#bySocket.get(workspace.socket) ?? new Daemon(workspace);
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

function left(until: number): number {
  return Math.max(1, until - performance.now());
}

function fileOf(args: unknown): string | undefined {
  if (typeof args !== "object" || args === null) return undefined;
  const named = FILE_ARGUMENTS.map((name) => (args as Fields)[name]);
  return named.find((name): name is string => typeof name === "string" && name !== "");
}

/**
 * Returns what to send for an event; undefined if the daemon does not need it.
 */
function told(event: { type: string; properties?: Fields }): Fields | undefined {
  const properties = event.properties ?? {};
  const info = (properties["info"] ?? {}) as Fields;
  const sessionID = properties["sessionID"] ?? info["id"];
  switch (event.type) {
    case "session.created":
      return { phase: event.type, sessionID, parentID: info["parentID"] };
    case "session.compacted": case "session.idle": case "session.deleted":
      return { phase: event.type, sessionID };
    case "message.part.updated": {
      // No other hook reports that a tool has thrown an error.
      const part = (properties["part"] ?? {}) as Fields;
      const state = (part["state"] ?? {}) as Fields;
      if (part["type"] !== "tool" || state["status"] !== "error") return undefined;
      return { phase: "failed", tool: part["tool"], sessionID: part["sessionID"], callID: part["callID"], args: state["input"] ?? {} };
    }
    default:
      return undefined;
  }
}

interface Part extends Fields {
  type?: string;
  id?: string;
  text?: string;
}

/**
 * The plug-in, which opencode calls once; it returns the hooks. The option
 * `withinMs` is how long a hook may take, in milliseconds.
 */
export const TouchmarkPlugin = async ({ directory }: { directory: string }, options: { withinMs?: number } = {}) => {
  const daemons = new Daemons(directory, options.withinMs ?? HOOK_DEADLINE);
  // The daemon starts in parallel with the agent. The first hooks may run
  // without it.
  void daemons.start().catch(() => undefined);
  const tell = async (input: Fields, file?: string): Promise<Wanted[]> => {
    try {
      return await daemons.tell(input, file);
    } catch {
      return [];
    }
  };

  return {
    "tool.execute.before": async (
      input: { tool: string; sessionID: string; callID: string },
      output: { args: unknown },
    ) => {
      const wanted = await tell({ phase: "before", ...input, args: output.args }, fileOf(output.args));
      const refused = wanted.find(({ deny }) => typeof deny === "string" && deny !== "");
      if (refused === undefined) return;
      // The model gets the message of this error as the tool's result.
      refused.delivered();
      throw new Error(refused.deny);
    },

    "tool.execute.after": async (
      input: { tool: string; sessionID: string; callID: string; args?: unknown },
      output: { title?: string; output: string; content?: unknown; metadata?: unknown },
    ) => {
      const { metadata, output: text, content } = output;
      for (const { append, delivered } of await tell({ phase: "after", ...input, metadata, output: text }, fileOf(input.args))) {
        // The result of an MCP server is passed on unchanged, so the text is
        // added as another part.
        if (append && Array.isArray(content)) content.push({ type: "text", text: append });
        else if (append) output.output = output.output ? `${output.output}\n\n${append}` : append;
        delivered();
      }
    },

    "chat.message": async (
      input: { sessionID: string; agent?: string; model?: { providerID: string; modelID: string }; messageID?: string },
      output: { message: { id?: string }; parts: Part[] },
    ) => {
      const texts = output.parts.filter((part) => part.type === "text" && typeof part.text === "string");
      const wanted = await tell({
        phase: "prompt",
        sessionID: input.sessionID,
        messageID: input.messageID ?? output.message.id,
        agent: input.agent,
        model: input.model?.modelID,
        provider: input.model?.providerID,
        prompt: texts.map((part) => part.text).join("\n"),
      });
      const last = texts.at(-1);
      for (const { append, delivered } of wanted) {
        // Without a part to copy, the text is not delivered; the daemon returns
        // it with the next tool.
        if (append && last === undefined) continue;
        if (append) output.parts.push({ ...last, id: `${last?.id}t${output.parts.length}`, text: append, synthetic: true });
        delivered();
      }
    },

    event: async ({ event }: { event: { type: string; properties?: Fields } }) => {
      const input = told(event);
      if (input === undefined || typeof input["sessionID"] !== "string") return;
      for (const { append, delivered } of await tell(input, fileOf(input["args"]))) if (!append) delivered();
    },

    dispose: async () => daemons.close(),
  };
};
