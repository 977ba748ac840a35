// A subscription that continues after the daemon was restarted. It reconnects
// and requests the missed events.

import { type Client, type ConnectOptions, connect, workspaceOf } from "./client.js";
import { pause } from "./connection.js";
import { TouchmarkError } from "./errors.js";
import type { Clock, Event, Subscribe } from "./generated/protocol.js";
import type { Workspace } from "./workspace.js";

/** The pause between two attempts to connect to a daemon, in milliseconds. */
const LOOK_AGAIN = 50;

/** The maximum number of events that are buffered until they are read. */
const MAX_WAITING = 65_536;

/** What a feed returns. */
export type Next =
  /** An event. */
  | { kind: "event"; event: Event }
  /** The feed has reconnected to a daemon, and no event was missed. */
  | { kind: "reconnected" }
  /**
   * The feed has reconnected to a daemon, and events may be missing (DUR-2).
   * Query the state of files again.
   */
  | { kind: "missed" };

/** Which events a feed subscribes to, and how it connects. */
export interface FeedOptions extends ConnectOptions, Pick<Subscribe, "kinds" | "since"> {
  /** Only events that concern this session; default: all. */
  about?: string;
  /**
   * How long to try to connect to another daemon, in milliseconds; default
   * 30,000.
   */
  patience?: number;
}

/**
 * The events of one workspace, also after its daemon was restarted. It is an
 * iterator: `for await (const next of feed)`. It ends by `close`, or throws if
 * no daemon answers within its patience.
 */
export class Feed implements AsyncIterable<Next> {
  readonly #workspace: Workspace;
  readonly #options: FeedOptions;
  readonly #queue: Next[] = [];
  #client: Client | undefined;
  #since: Clock | undefined;
  /** Why the current connection can no longer be used. */
  #lost: TouchmarkError | undefined;
  #wake: (() => void) | undefined;
  #closed = false;

  private constructor(workspace: Workspace, options: FeedOptions) {
    this.#workspace = workspace;
    this.#options = options;
    this.#since = options.since ?? undefined;
  }

  /** Subscribes. Starts a daemon if none runs, unless `start` is false. */
  static async open(options: FeedOptions = {}): Promise<Feed> {
    const feed = new Feed(await workspaceOf(options), options);
    await feed.#subscribe(options.start ?? true);
    return feed;
  }

  /**
   * The clock of the last event that was returned. Another feed can continue
   * after it.
   */
  get since(): Clock | undefined {
    return this.#since;
  }

  /** Returns the next event or gap; undefined after the feed was closed. */
  async next(): Promise<Next | undefined> {
    for (;;) {
      if (this.#closed) return undefined;
      const next = this.#queue.shift();
      if (next !== undefined) {
        if (next.kind === "event") this.#since = next.event.clock;
        return next;
      }
      if (this.#lost !== undefined) return this.#reconnect(this.#lost);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Next, void, undefined> {
    try {
      for (let next = await this.next(); next !== undefined; next = await this.next()) yield next;
    } finally {
      this.close();
    }
  }

  /** Ends the subscription. */
  close(): void {
    this.#closed = true;
    this.#client?.close();
    this.#wake?.();
  }

  async #reconnect(why: TouchmarkError): Promise<Next | undefined> {
    if (!why.isDisconnected && why.code !== "lagged") throw why;
    const until = performance.now() + (this.#options.patience ?? 30_000);
    for (;;) {
      try {
        const missed = await this.#subscribe(false);
        return { kind: missed ? "missed" : "reconnected" };
      } catch (error) {
        if (this.#closed) return undefined;
        const again = error instanceof TouchmarkError && error.isDisconnected;
        if (!again || performance.now() >= until) throw error;
      }
      await pause(LOOK_AGAIN);
    }
  }

  /**
   * Subscribes after the last event that was returned. Returns true if the
   * daemon no longer has the events since then.
   */
  async #subscribe(start: boolean): Promise<boolean> {
    const client = await connect({ ...this.#options, workspace: this.#workspace, start });
    if (this.#closed) client.close();
    this.#client = client;
    this.#lost = undefined;
    client.listen((event) => this.#hear(client, event), (error) => this.#lose(client, error));
    const { kinds, about } = this.#options;
    const wanted = { session: about ?? null, ...(kinds === undefined ? {} : { kinds }) };
    let missed = false;
    try {
      await client.subscribe({ ...wanted, since: this.#since ?? null });
    } catch (error) {
      if (!(error instanceof TouchmarkError) || error.code !== "unknownClock") throw error;
      this.#since = undefined;
      await client.subscribe(wanted);
      missed = true;
    }
    // This clock lets the feed continue if the daemon exits before the first
    // event.
    this.#since ??= client.server.clock;
    return missed;
  }

  #hear(from: Client, event: Event): void {
    if (from !== this.#client || this.#lost !== undefined) return;
    if (this.#queue.length >= MAX_WAITING) {
      this.#lose(from, new TouchmarkError("lagged", `${MAX_WAITING} events were waiting unread, so the subscription was ended`));
      from.close();
      return;
    }
    this.#queue.push({ kind: "event", event });
    this.#wake?.();
  }

  #lose(from: Client, error: TouchmarkError): void {
    if (from !== this.#client) return;
    this.#lost ??= error;
    this.#wake?.();
  }
}
