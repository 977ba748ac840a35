// Connections with the protocol's types.

import { Connection, DEFAULT_DEADLINE } from "./connection.js";
import { TouchmarkError } from "./errors.js";
import { type Initialize, type Initialized, type Program, type Role, PROTOCOL } from "./generated/protocol.js";
import type { Event, Methods } from "./generated/protocol.js";
import { type Ask, type Method, Requests } from "./generated/requests.js";
import type { Environment } from "./places.js";
import { START_DEADLINE, dialWorkspace, startDaemon } from "./start.js";
import { Workspace } from "./workspace.js";

/** How long a daemon may take to let go of its socket after `shutdown`. */
const END_DEADLINE = 5_000;

/** How to reach a daemon, and as whom. */
export interface ConnectOptions {
  /** The workspace, or a directory in it: the current directory unless told. */
  workspace?: Workspace | string | Uint8Array;
  /** The variables that say where things are: the process's own unless told. */
  environment?: Environment;
  /** Start a daemon where none runs; true unless told. */
  start?: boolean;
  /** How long a daemon may take to come up, in milliseconds. */
  startWithinMs?: number;
  /** How long each call waits for its answer, in milliseconds; 10,000 unless told. */
  withinMs?: number;
  /** The program that asks. */
  program?: Program;
  /** The session that the connection works for. */
  session?: string;
  /** What the client is. */
  role?: Role;
}

/** A connection to a daemon: a method for each request. */
export class Client extends Requests {
  /** Who answers. */
  readonly server: Initialized;
  /** Whose daemon it is. */
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

  /** Says hello on a connection. */
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

  /** Why the connection ended, if it has. */
  get ended(): TouchmarkError | undefined {
    return this.#connection.ended;
  }

  override async call<M extends Method>(method: M, params: Methods[M]["params"], ask: Ask = {}): Promise<Methods[M]["result"]> {
    const answer = await this.#connection.call(method, params, ask.withinMs ?? this.#withinMs);
    return answer as Methods[M]["result"];
  }

  /** Hands out the events of this connection's subscriptions, and says when it has ended. */
  listen(onEvent: (event: Event) => void, onEnd: (error: TouchmarkError) => void): void {
    this.#connection.onEvent = (event) => onEvent(event as Event);
    this.#connection.onEnd = onEnd;
    this.#connection.listening = true;
    if (this.#connection.ended !== undefined) onEnd(this.#connection.ended);
  }

  /** Ends the connection, and with it the edits that are bound to it. */
  close(): void {
    this.#connection.close();
  }
}

/**
 * Connects to the daemon of a workspace, and starts one where none runs. One of
 * an older protocol is asked to end and replaced; its state survives.
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

/** The workspace that the options name. */
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
  // What it answers does not matter: it may be gone before it could.
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
