// A subscription that outlives its daemon: it connects again and asks for what
// it missed.

import { type Client, type ConnectOptions, connect, workspaceOf } from "./client.js";
import { pause } from "./connection.js";
import { TouchmarkError } from "./errors.js";
import type { Clock, Event, Subscribe } from "./generated/protocol.js";
import type { Workspace } from "./workspace.js";

/** How long to wait between two looks for a daemon, in milliseconds. */
const LOOK_AGAIN = 50;

/** How many events are kept for a reader that does not come. */
const MAX_WAITING = 65_536;

/** What a feed has to say. */
export type Next =
  /** Something happened. */
  | { kind: "event"; event: Event }
  /** The daemon went away and another answers. Nothing was missed. */
  | { kind: "reconnected" }
  /**
   * The same, but what happened in between is not known (DUR-2): what was
   * believed about files has to be asked again.
   */
  | { kind: "missed" };

/** What is wanted, and how patiently. */
export interface FeedOptions extends ConnectOptions, Pick<Subscribe, "kinds" | "since"> {
  /** Only what concerns this session. */
  about?: string;
  /** How long another daemon is looked for before giving up, in milliseconds; 30,000 unless told. */
  patience?: number;
}

/**
 * Events of one workspace, across restarts of its daemon. An iterator: `for
 * await (const next of feed)`. It ends by `close`, or throws when no daemon came
 * within its patience.
 */
export class Feed implements AsyncIterable<Next> {
  readonly #workspace: Workspace;
  readonly #options: FeedOptions;
  readonly #queue: Next[] = [];
  #client: Client | undefined;
  #since: Clock | undefined;
  /** Why the present connection is of no more use. */
  #lost: TouchmarkError | undefined;
  #wake: (() => void) | undefined;
  #closed = false;

  private constructor(workspace: Workspace, options: FeedOptions) {
    this.#workspace = workspace;
    this.#options = options;
    this.#since = options.since ?? undefined;
  }

  /** Subscribes; where no daemon runs, one is started, unless `start` is false. */
  static async open(options: FeedOptions = {}): Promise<Feed> {
    const feed = new Feed(await workspaceOf(options), options);
    await feed.#subscribe(options.start ?? true);
    return feed;
  }

  /** The clock of the last event handed out: where another feed would go on. */
  get since(): Clock | undefined {
    return this.#since;
  }

  /** The next thing to say; nothing once the feed is closed. */
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

  /** Subscribes from where the feed stopped; true if that place is not known any more. */
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
    // So that a daemon that dies before the first event can be followed too.
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
