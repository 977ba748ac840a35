// A session's connection. It reconnects when the connection was lost, and lets
// the session continue if no daemon can be reached.

import { type Client, type ConnectOptions, connect, workspaceOf } from "./client.js";
import { TouchmarkError } from "./errors.js";
import type { Methods } from "./generated/protocol.js";
import type { Ask, Method } from "./generated/requests.js";
import type { Workspace } from "./workspace.js";

/**
 * How long to wait, in milliseconds, after a failed connection before the next
 * attempt.
 */
const TRY_AGAIN = 30_000;

/**
 * Requests that are not repeated on a new connection: the first one may have
 * taken effect, and a second one would have its own effect.
 */
const ONCE: ReadonlySet<string> = new Set([
  "file/write", "file/edit", "checkpoint/create", "warning/take", "modified/take",
  "edit/begin", "edit/mark", "command/begin", "recovery/restore", "recovery/delete", "call/record",
] satisfies Method[]);

/** How to connect. */
export interface LinkOptions extends ConnectOptions {
  /**
   * Called once when files are no longer tracked; default: a warning of the
   * process.
   */
  onNotice?: (notice: string) => void;
}

/** A connection to a workspace's daemon, replaced when it is lost. */
export class Link {
  /** The workspace. */
  readonly workspace: Workspace;
  readonly #options: LinkOptions;
  readonly #greet: (client: Client) => Promise<void>;
  #client: Client | undefined;
  #connecting: Promise<Client> | undefined;
  #lost: { at: number; error: TouchmarkError } | undefined;
  #told = false;
  #closed = false;

  private constructor(workspace: Workspace, options: LinkOptions, greet: (client: Client) => Promise<void>) {
    this.workspace = workspace;
    this.#options = options;
    this.#greet = greet;
  }

  /**
   * Returns a link to the daemon of a workspace. `greet` is called with each
   * new connection before any other request.
   */
  static async to(options: LinkOptions, greet: (client: Client) => Promise<void>): Promise<Link> {
    return new Link(await workspaceOf(options), options, greet);
  }

  /** Returns a link that starts with an open connection. */
  static over(client: Client, options: LinkOptions, greet: (client: Client) => Promise<void>): Link {
    const link = new Link(client.workspace, options, greet);
    link.#client = client;
    return link;
  }

  /** Whether the connection is open, as far as is known. */
  get isUp(): boolean {
    return this.#client !== undefined && this.#client.ended === undefined;
  }

  /** Returns the connection, or a new one if it was lost. */
  async client(): Promise<Client> {
    if (this.#closed) throw new TouchmarkError("connectionClosed", "this session was closed");
    if (this.#client !== undefined && this.#client.ended === undefined) return this.#client;
    if (this.#lost !== undefined && performance.now() - this.#lost.at < TRY_AGAIN) throw this.#lost.error;
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #connect(): Promise<Client> {
    let client: Client | undefined;
    try {
      client = await connect({ ...this.#options, workspace: this.workspace });
      await this.#greet(client);
    } catch (error) {
      client?.close();
      if (error instanceof TouchmarkError && error.isOutage) this.#lost = { at: performance.now(), error };
      throw error;
    }
    this.#client = client;
    this.#lost = undefined;
    this.#told = false;
    return client;
  }

  /**
   * Sends a request. If the connection was lost, sends it again on a new one,
   * unless that could take effect twice.
   */
  async call<M extends Method>(method: M, params: Methods[M]["params"], ask?: Ask): Promise<Methods[M]["result"]> {
    const first = await this.client();
    try {
      return await first.call(method, params, ask);
    } catch (error) {
      if (!(error instanceof TouchmarkError) || !error.isDisconnected) throw error;
      if (first === this.#client) this.#client = undefined;
      first.close();
      // A daemon that is shutting down says so before it carries anything out.
      if (this.#closed || (ONCE.has(method) && error.code !== "shuttingDown")) throw error;
    }
    return (await this.client()).call(method, params, ask);
  }

  /**
   * Runs `ask`, or `without` if no daemon can be reached; that is reported
   * once.
   */
  async orWithout<T>(ask: () => Promise<T>, without: (error: TouchmarkError) => Promise<T> | T): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof TouchmarkError) || !error.isOutage || this.#closed) throw error;
      if (!error.isDisconnected && this.#client !== undefined) this.#lose(error);
      const done = await without(error);
      const notice = this.notice(error);
      if (notice !== undefined) this.say(notice);
      return done;
    }
  }

  /**
   * Drops a connection that does not answer, so that later calls do not wait
   * for it.
   */
  #lose(error: TouchmarkError): void {
    this.#client?.close();
    this.#client = undefined;
    this.#lost = { at: performance.now(), error };
  }

  /**
   * Returns the sentence that reports an outage; undefined if it was already
   * reported.
   */
  notice(error: TouchmarkError): string | undefined {
    if (this.#told) return undefined;
    this.#told = true;
    return `[touchmark: ${error.message}; going on without tracking]`;
  }

  /** Reports a notice by `onNotice`, or as a warning of the process. */
  say(notice: string): void {
    if (this.#options.onNotice !== undefined) this.#options.onNotice(notice);
    else process.emitWarning(notice, "TouchmarkWarning");
  }

  /** Closes the connection for good. */
  close(): void {
    this.#closed = true;
    this.#client?.close();
    this.#client = undefined;
  }
}
