// The opencode plug-in; what it does is in plugin.ts.

import { Daemons, type Fields, denial, fileOf } from "./plugin.js";

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
  const daemons = new Daemons("opencode", directory, options.withinMs);
  const tell = (input: Fields, file?: string) => daemons.tell(input, file);

  return {
    "tool.execute.before": async (
      input: { tool: string; sessionID: string; callID: string },
      output: { args: unknown },
    ) => {
      const wanted = await tell({ phase: "before", ...input, args: output.args }, fileOf(output.args));
      const refused = denial(wanted);
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
