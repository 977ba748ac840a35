// The extension for pi; what it does is in plugin.ts.

import { Daemons, type Fields, denial, fileOf } from "./plugin.js";

/** A part of a message's or a result's content. */
interface Part extends Fields {
  type: string;
  text?: string;
}

/** What pi says beside each event. */
interface Context {
  cwd: string;
  model?: { id?: string; provider?: string };
  sessionManager: { getSessionId(): string; getEntries(): { type?: string }[] };
}

interface ToolEvent {
  toolName: string;
  toolCallId: string;
  input: Fields;
}

/** The part of pi's interface for extensions that is used. */
interface Host {
  on(event: string, handler: (event: never, context: Context) => unknown): void;
}

/** Returns the text of a tool's result. */
function textOf(content: Part[]): string {
  return content.filter((part) => part.type === "text").map((part) => part.text ?? "").join("\n");
}

/** The extension, which pi calls once. */
export default (pi: Host, options: { withinMs?: number } = {}) => {
  let daemons: Daemons | undefined;
  const tell = (event: Fields, context: Context, file?: string) => {
    daemons ??= new Daemons("pi", context.cwd, options.withinMs);
    return daemons.tell({ sessionID: context.sessionManager.getSessionId(), ...event }, file);
  };
  const quietly = async (event: Fields, context: Context) => {
    for (const { append, delivered } of await tell(event, context)) if (!append) delivered();
  };
  const call = ({ toolName, toolCallId, input }: ToolEvent): Fields => ({ tool: toolName, callID: toolCallId, args: input });

  pi.on("session_start", async ({ reason }: { reason: string }, context) => {
    const goesOn = context.sessionManager.getEntries().some(({ type }) => type === "message");
    await quietly({ phase: "session.created", source: goesOn ? "resume" : reason }, context);
  });
  pi.on("session_compact", (_: never, context) => quietly({ phase: "session.compacted" }, context));
  pi.on("agent_end", (_: never, context) => quietly({ phase: "session.idle" }, context));
  pi.on("session_shutdown", async ({ reason }: { reason: string }, context) => {
    if (reason !== "reload") await quietly({ phase: "session.deleted" }, context);
    daemons?.close();
    daemons = undefined;
  });

  pi.on("before_agent_start", async ({ prompt }: { prompt: string }, context) => {
    const { id, provider } = context.model ?? {};
    const texts: string[] = [];
    for (const { append, delivered } of await tell({ phase: "prompt", prompt, model: id, provider }, context)) {
      if (append) texts.push(append);
      delivered();
    }
    if (texts.length === 0) return undefined;
    return { message: { customType: "touchmark", content: texts.join("\n\n"), display: true } };
  });

  pi.on("tool_call", async (event: ToolEvent, context) => {
    const refused = denial(await tell({ phase: "before", ...call(event) }, context, fileOf(event.input)));
    if (refused === undefined) return undefined;
    refused.delivered();
    return { block: true, reason: refused.deny };
  });

  pi.on("tool_result", async (event: ToolEvent & { content: Part[]; details?: unknown; isError: boolean }, context) => {
    const output = textOf(event.content);
    const ended = event.isError ? { phase: "failed", error: output } : { phase: "after", output, metadata: event.details };
    const added: Part[] = [];
    for (const { append, delivered } of await tell({ ...ended, ...call(event) }, context, fileOf(event.input))) {
      if (append) added.push({ type: "text", text: append });
      delivered();
    }
    return added.length === 0 ? undefined : { content: [...event.content, ...added] };
  });
};
