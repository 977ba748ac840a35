// A connection that is made again when it is lost, and that is done without
// where there is no daemon to be had.

import { type Client, type ConnectOptions, connect, workspaceOf } from "./client.js";
import { TouchmarkError } from "./errors.js";
import type { Methods } from "./generated/protocol.js";
import type { Ask, Method } from "./generated/requests.js";
import type { Workspace } from "./workspace.js";

/** Without a daemon, no other is looked for so long, in milliseconds. */
const TRY_AGAIN = 30_000;

/** What may have taken effect before its connection was lost, and would do so again. */
const ONCE: ReadonlySet<string> = new Set([
  "file/write", "file/edit", "checkpoint/create", "warning/take", "modified/take",
  "edit/begin", "edit/mark", "command/begin", "recovery/restore", "recovery/delete", "call/record",
] satisfies Method[]);

/** How a link is made. */
export interface LinkOptions extends ConnectOptions {
  /** Said once, when files are no longer tracked; a warning of the process unless told. */
  onNotice?: (notice: string) => void;
}

/** The way to a workspace's daemon. */
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

  /** To the daemon of a workspace; `greet` speaks first on each connection. */
  static async to(options: LinkOptions, greet: (client: Client) => Promise<void>): Promise<Link> {
    return new Link(await workspaceOf(options), options, greet);
  }

  /** Over a connection that is there. */
  static over(client: Client, options: LinkOptions, greet: (client: Client) => Promise<void>): Link {
    const link = new Link(client.workspace, options, greet);
    link.#client = client;
    return link;
  }

  /** Whether a daemon answers, as far as is known. */
  get isUp(): boolean {
    return this.#client !== undefined && this.#client.ended === undefined;
  }

  /** A connection, a new one if the old one is lost. */
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

  /** Asks; once more on a new connection, where the old one was lost and asking twice does no harm. */
  async call<M extends Method>(method: M, params: Methods[M]["params"], ask?: Ask): Promise<Methods[M]["result"]> {
    const first = await this.client();
    try {
      return await first.call(method, params, ask);
    } catch (error) {
      if (!(error instanceof TouchmarkError) || !error.isDisconnected) throw error;
      if (first === this.#client) this.#client = undefined;
      first.close();
      // One that shuts down says so before it does anything.
      if (this.#closed || (ONCE.has(method) && error.code !== "shuttingDown")) throw error;
    }
    return (await this.client()).call(method, params, ask);
  }

  /** Runs `ask`, or `without` where there is no daemon to be had, and says so once. */
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

  /** It does not answer: not every later call is to wait for it. */
  #lose(error: TouchmarkError): void {
    this.#client?.close();
    this.#client = undefined;
    this.#lost = { at: performance.now(), error };
  }

  /** What to say of an outage; nothing, where that was said. */
  notice(error: TouchmarkError): string | undefined {
    if (this.#told) return undefined;
    this.#told = true;
    return `[touchmark: ${error.message}; going on without tracking]`;
  }

  /** Says something to whoever listens. */
  say(notice: string): void {
    if (this.#options.onNotice !== undefined) this.#options.onNotice(notice);
    else process.emitWarning(notice, "TouchmarkWarning");
  }

  /** Ends it for good. */
  close(): void {
    this.#closed = true;
    this.#client?.close();
    this.#client = undefined;
  }
}
