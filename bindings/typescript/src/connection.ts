// One connection: JSON-RPC 2.0, one message per line. Every call has a
// deadline: a daemon that has exited, hangs or is slow causes an error at that
// time (LIFE-4).

import { type Socket, createConnection } from "node:net";

import { type ErrorFields, TouchmarkError, systemCode } from "./errors.js";

/** The default time to wait for an answer, in milliseconds. */
export const DEFAULT_DEADLINE = 10_000;

/**
 * The pause between two attempts while a daemon's queue is full, in
 * milliseconds.
 */
const AGAIN = 10;

/**
 * The most bytes without a line feed that are accepted. An answer has at most
 * 16 MiB (LIM-1), so what is longer does not come from a daemon.
 */
const MAX_MESSAGE = 64 * 1024 * 1024;

interface Waiting {
  method: string;
  timer: ReturnType<typeof setTimeout>;
  resolve(result: unknown): void;
  reject(error: TouchmarkError): void;
}

interface Message {
  id?: number | null;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string; data?: ErrorFields };
}

/** A connection to a daemon. Calls may run concurrently. */
export class Connection {
  /** Called with the parameters of each notification `event`. */
  onEvent: ((event: unknown) => void) | undefined;
  /** Called once, when the connection has ended. */
  onEnd: ((error: TouchmarkError) => void) | undefined;

  readonly #socket: Socket;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 1;
  #rest: Buffer[] = [];
  #kept = 0;
  #ended: TouchmarkError | undefined;
  #listening = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", (error) => this.#end(error.message));
    socket.on("close", () => this.#end(""));
    this.#hold();
  }

  /**
   * Connects within `withinMs` milliseconds. Retries while the daemon's queue
   * of connections is full.
   */
  static async open(socket: string, withinMs: number): Promise<Connection> {
    const until = performance.now() + withinMs;
    for (;;) {
      try {
        return new Connection(await dial(socket, until, withinMs));
      } catch (error) {
        const full = systemCode(error) === "EAGAIN";
        if (full && performance.now() < until) {
          await pause(AGAIN);
          continue;
        }
        throw refused(socket, error, withinMs);
      }
    }
  }

  /** Why the connection ended; undefined while it is open. */
  get ended(): TouchmarkError | undefined {
    return this.#ended;
  }

  /**
   * Whether to keep the process alive while no call is pending, to receive
   * events.
   */
  set listening(listening: boolean) {
    this.#listening = listening;
    this.#hold();
  }

  /**
   * Sends a request and waits for its answer, at most `withinMs` milliseconds.
   */
  call(method: string, params: object, withinMs: number): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const id = this.#nextId++;
    // The request includes the deadline, so that the daemon does not carry it
    // out after the caller has stopped waiting (ATTR-9).
    const asked = { withinMs: Math.max(1, Math.ceil(withinMs)), ...params };
    const line = `${JSON.stringify({ jsonrpc: "2.0", id, method, params: asked })}\n`;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        this.#hold();
        reject(late(method, withinMs));
      }, withinMs);
      this.#waiting.set(id, { method, timer, resolve, reject });
      this.#hold();
      this.#socket.write(line);
    });
  }

  /** Closes the connection. */
  close(): void {
    this.#end("closed by this client");
    this.#socket.destroy();
  }

  /**
   * Keeps the process alive only while a call is pending or events are
   * expected.
   */
  #hold(): void {
    if (this.#listening || this.#waiting.size > 0) this.#socket.ref();
    else this.#socket.unref();
  }

  #take(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(0x0a); at >= 0; at = chunk.indexOf(0x0a, from)) {
      this.#rest.push(chunk.subarray(from, at));
      const line = Buffer.concat(this.#rest).toString("utf8");
      this.#rest = [];
      this.#kept = 0;
      from = at + 1;
      this.#hear(line);
    }
    const left = chunk.subarray(from);
    this.#rest.push(left);
    this.#kept += left.length;
    if (this.#kept > MAX_MESSAGE) this.#break("a message without an end");
  }

  #hear(line: string): void {
    if (line.trim() === "") return;
    let message: Message;
    try {
      message = JSON.parse(line) as Message;
    } catch {
      return this.#break(line.slice(0, 200));
    }
    if (message.method === "event") {
      this.onEvent?.(message.params);
      return;
    }
    const waiting = typeof message.id === "number" ? this.#waiting.get(message.id) : undefined;
    // No caller waits for an answer that came after its deadline.
    if (waiting === undefined) return;
    this.#waiting.delete(message.id as number);
    clearTimeout(waiting.timer);
    this.#hold();
    if (message.error) waiting.reject(TouchmarkError.answered(message.error));
    else waiting.resolve(message.result);
  }

  #break(said: string): void {
    this.#end("", new TouchmarkError("protocol", `the daemon sent something that is not an answer: ${said}`));
    this.#socket.destroy();
  }

  #end(reason: string, error = gone(reason)): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    for (const { timer, reject } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(error);
    }
    this.#waiting.clear();
    this.onEnd?.(error);
  }
}

function dial(path: string, until: number, withinMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ path });
    const timer = setTimeout(() => {
      socket.destroy();
      reject(late("connect", withinMs));
    }, Math.max(0, until - performance.now()));
    socket.once("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.removeAllListeners("error");
      resolve(socket);
    });
  });
}

function refused(socket: string, error: unknown, withinMs: number): TouchmarkError {
  if (error instanceof TouchmarkError) return error;
  switch (systemCode(error)) {
    // ECONNRESET: the daemon exited before it accepted the connection.
    case "ENOENT": case "ECONNREFUSED": case "ENOTDIR": case "ECONNRESET":
      return new TouchmarkError("noDaemon", `no daemon answers at ${socket}`, { cause: error });
    case "EAGAIN":
      return late("connect", withinMs);
    default:
      return new TouchmarkError("place", `connect to ${socket}: ${(error as Error).message}`, { cause: error });
  }
}

function late(method: string, withinMs: number): TouchmarkError {
  return new TouchmarkError("deadline", `the daemon did not answer ${method} within ${withinMs} ms`);
}

function gone(reason: string): TouchmarkError {
  return new TouchmarkError("connectionClosed", `the daemon closed the connection${reason && `: ${reason}`}`);
}

/** Waits for a number of milliseconds. */
export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
