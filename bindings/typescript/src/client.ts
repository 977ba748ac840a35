// A client: a connection to a daemon, with a method for each request.

import { Connection, DEFAULT_DEADLINE } from "./connection.js";
import { TouchmarkError } from "./errors.js";
import { type Initialize, type Initialized, type Program, type Role, PROTOCOL } from "./generated/protocol.js";
import type { Event, Methods } from "./generated/protocol.js";
import { type Ask, type Method, Requests } from "./generated/requests.js";
import type { Environment } from "./places.js";
import { START_DEADLINE, dialWorkspace, startDaemon } from "./start.js";
import { Workspace } from "./workspace.js";

/**
 * How long a daemon may take to close its socket after `shutdown`, in
 * milliseconds.
 */
const END_DEADLINE = 5_000;

/** How to reach a daemon, and how the client identifies itself. */
export interface ConnectOptions {
  /** The workspace, or a directory in it; default: the current directory. */
  workspace?: Workspace | string | Uint8Array;
  /** The environment variables that determine paths; default: the process's. */
  environment?: Environment;
  /** Whether to start a daemon if none runs; default true. */
  start?: boolean;
  /** How long a daemon may take to start, in milliseconds; default 10,000. */
  startWithinMs?: number;
  /**
   * How long to wait for the answer to a call, in milliseconds; default 10,000.
   */
  withinMs?: number;
  /** The client's name and version. */
  program?: Program;
  /** The session that the connection works for; default: for no single one. */
  session?: string;
  /** The kind of the client; default: not given. */
  role?: Role;
}

/** A connection to a daemon, with a method for each request. */
export class Client extends Requests {
  /** What the daemon answered to `initialize`. */
  readonly server: Initialized;
  /** The daemon's workspace. */
  readonly workspace: Workspace;
  readonly #connection: Connection;
  readonly #withinMs: number;

  private constructor(connection: Connection, server: Initialized, workspace: Workspace, withinMs: number) {
    super();
    this.#connection = connection;
    this.server = server;
    this.workspace = workspace;
    this.#withinMs = withinMs;
  }

  /** Sends `initialize` on a connection, and returns a client that uses it. */
  static async over(connection: Connection, workspace: Workspace, options: ConnectOptions = {}): Promise<Client> {
    const withinMs = options.withinMs ?? DEFAULT_DEADLINE;
    const hello: Initialize = {
      client: options.program ?? { name: "touchmark-node", version: "0.1.0" },
      protocol: PROTOCOL,
      session: options.session ?? null,
      role: options.role ?? null,
    };
    try {
      const server = (await connection.call("initialize", hello, withinMs)) as Initialized;
      workspace.checkServed(server.workspace);
      return new Client(connection, server, workspace, withinMs);
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** Why the connection ended; undefined while it is open. */
  get ended(): TouchmarkError | undefined {
    return this.#connection.ended;
  }

  override async call<M extends Method>(method: M, params: Methods[M]["params"], ask: Ask = {}): Promise<Methods[M]["result"]> {
    const answer = await this.#connection.call(method, params, ask.withinMs ?? this.#withinMs);
    return answer as Methods[M]["result"];
  }

  /**
   * Passes each event of this connection's subscriptions to `onEvent`, and the
   * end of the connection to `onEnd`.
   */
  listen(onEvent: (event: Event) => void, onEnd: (error: TouchmarkError) => void): void {
    this.#connection.onEvent = (event) => onEvent(event as Event);
    this.#connection.onEnd = onEnd;
    this.#connection.listening = true;
    if (this.#connection.ended !== undefined) onEnd(this.#connection.ended);
  }

  /** Closes the connection. Edits that are bound to it end. */
  close(): void {
    this.#connection.close();
  }
}

/**
 * Connects to the daemon of a workspace. Starts one if none runs. A daemon of
 * an older protocol is shut down and replaced; its state is kept.
 */
export async function connect(options: ConnectOptions = {}): Promise<Client> {
  const workspace = await workspaceOf(options);
  const withinMs = options.withinMs ?? DEFAULT_DEADLINE;
  try {
    return await Client.over(await dialWorkspace(workspace, withinMs), workspace, options);
  } catch (error) {
    if (!(error instanceof TouchmarkError) || options.start === false) throw error;
    if (isOlder(error)) await replace(workspace, withinMs);
    else if (!error.isDisconnected) throw error;
  }
  const connection = await startDaemon(workspace, options.startWithinMs ?? START_DEADLINE);
  return Client.over(connection, workspace, options);
}

/** Returns the workspace that the options name. */
export async function workspaceOf(options: ConnectOptions): Promise<Workspace> {
  if (options.workspace instanceof Workspace) return options.workspace;
  return Workspace.find(options.workspace ?? ".", options.environment ?? process.env);
}

function isOlder(error: TouchmarkError): boolean {
  const theirs = error.data["server"];
  return error.code === "incompatible" && typeof theirs === "number" && theirs < PROTOCOL;
}

async function replace(workspace: Workspace, withinMs: number): Promise<void> {
  const old = await dialWorkspace(workspace, withinMs);
  // The answer is ignored: the daemon may exit before it answers.
  await old.call("shutdown", {}, withinMs).catch(() => undefined);
  old.close();
  const until = performance.now() + END_DEADLINE;
  while (await workspace.isRunning()) {
    if (performance.now() >= until) {
      throw new TouchmarkError("deadline", `the older daemon did not end within ${END_DEADLINE} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
