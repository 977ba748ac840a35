// The plug-in for Cline's command line; what it does is in plugin.ts. Cline
// loads it into a process of its own.

import { readFileSync } from "node:fs";

import { Daemons, type Fields, type Wanted, denial, fileOf } from "./plugin.js";

interface Snapshot {
  agentId: string;
  parentAgentId?: string | null;
  messages?: { role?: string; content?: unknown }[];
}

interface ToolContext {
  snapshot: Snapshot;
  toolCall: { toolCallId?: string; id?: string; toolName?: string; name?: string };
  tool: { name: string };
  input: Fields | null;
}

interface Result {
  output?: unknown;
  isError?: boolean;
}

/** One file's part of a call, as the daemon gets it. */
interface Piece {
  tool: string;
  callID: string;
  args: Fields;
  output?: string;
  failed?: boolean;
}

/** What the plug-in knows of the session that it was loaded for. */
let session: string | undefined;
let daemons: Daemons | undefined;
/** The agent of the conversation itself; the others are its sub-agents. */
let main: string | undefined;

/**
 * The variables that say where touchmark's daemon and program are, and how long
 * a hook may take.
 */
const VARIABLES = /^(XDG_(RUNTIME_DIR|STATE_HOME|CONFIG_HOME|CACHE_HOME)|TOUCHMARK_\w+)$/;

/**
 * Takes over these variables from Cline's own process, where the system shows
 * them: Cline gives its plug-ins only a few.
 */
function adoptVariables(): void {
  let variables: string[];
  try {
    variables = readFileSync(`/proc/${process.ppid}/environ`, "utf8").split("\0");
  } catch {
    return;
  }
  for (const variable of variables) {
    const at = variable.indexOf("=");
    const name = variable.slice(0, at);
    if (VARIABLES.test(name)) process.env[name] ??= variable.slice(at + 1);
  }
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value == null ? [] : [value];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : value == null ? "" : JSON.stringify(value);
}

/** Returns the text of a result, without the numbers before each line. */
function shown(result: unknown): string {
  return textOf(result).replace(/^ *\d+ \| ?/gm, "");
}

/** Returns a call in pieces, one for each file. */
function pieces({ tool, toolCall, input }: ToolContext, result?: Result): Piece[] {
  const callID = toolCall.toolCallId ?? toolCall.id ?? "";
  const given = input ?? {};
  const outputs = list(result?.output) as { result?: unknown; success?: boolean; error?: unknown }[];
  const ended = (at: number): Partial<Piece> => result === undefined ? {} : {
    output: tool.name === "read_files" ? shown(outputs[at]?.result) : textOf(outputs.map((one) => one?.result ?? one).join("\n")),
    failed: result.isError === true || outputs[at]?.success === false,
  };
  switch (tool.name) {
    case "read_files": {
      const files = list(given["files"] ?? given["file_paths"]);
      return files.map((file, at) => ({
        tool: "read_files",
        callID: `${callID}/${at}`,
        args: typeof file === "string" ? { path: file } : (file as Fields),
        ...ended(at),
      }));
    }
    case "run_commands": {
      const commands = list(given["commands"] ?? given["command"]).map(textOf);
      return [{ tool: "run_commands", callID, args: { command: commands.join("\n") }, ...ended(0) }];
    }
    case "editor": {
      // The tool creates a file, inserts lines, or replaces a text.
      const does = given["insert_line"] != null ? "insert" : given["old_text"] == null ? "create" : "editor";
      return [{ tool: does, callID, args: given, ...ended(0) }];
    }
    default:
      return [{ tool: tool.name, callID, args: given, ...ended(0) }];
  }
}

/** Returns the fields that name the conversation of an event. */
function who(snapshot: Snapshot): Fields {
  main ??= snapshot.agentId;
  if (snapshot.agentId === main && !snapshot.parentAgentId) return { sessionID: session };
  return { sessionID: `${session}/${snapshot.agentId}`, parentID: session };
}

async function tell(snapshot: Snapshot, event: Fields, file?: string): Promise<Wanted[]> {
  return (await daemons?.tell({ ...who(snapshot), ...event }, file)) ?? [];
}

/** Returns the answers' texts as one context; undefined if there are none. */
function context(wanted: Wanted[]): { appendContext: string } | undefined {
  const texts: string[] = [];
  for (const { append, delivered } of wanted) {
    if (append) texts.push(append);
    delivered();
  }
  return texts.length === 0 ? undefined : { appendContext: texts.join("\n\n") };
}

/** Returns the newest prompt of a conversation. */
function promptOf({ messages }: Snapshot): string {
  const last = messages?.filter(({ role }) => role === "user").at(-1)?.content;
  return list(last).map((part) => (typeof part === "string" ? part : textOf((part as Fields)["text"]))).join("\n");
}

export default {
  name: "touchmark",
  manifest: { capabilities: ["hooks"] },

  setup(_api: unknown, given: { session?: { sessionId?: string }; workspaceInfo?: { rootPath?: string } }) {
    adoptVariables();
    session = given.session?.sessionId ?? `cline-${process.pid}`;
    daemons = new Daemons("cline", given.workspaceInfo?.rootPath ?? process.cwd());
  },

  hooks: {
    async beforeRun({ snapshot }: { snapshot: Snapshot }) {
      return context(await tell(snapshot, { phase: "prompt", prompt: promptOf(snapshot) }));
    },

    async afterRun({ snapshot }: { snapshot: Snapshot }) {
      for (const { append, delivered } of await tell(snapshot, { phase: "session.idle" })) if (!append) delivered();
    },

    async beforeTool(given: ToolContext) {
      for (const piece of pieces(given)) {
        const refused = denial(await tell(given.snapshot, { phase: "before", ...piece }, fileOf(piece.args)));
        if (refused === undefined) continue;
        refused.delivered();
        return { skip: true, reason: refused.deny };
      }
      return undefined;
    },

    async afterTool(given: ToolContext & { result: Result }) {
      const wanted: Wanted[] = [];
      for (const { failed, ...piece } of pieces(given, given.result)) {
        const ended = failed ? { phase: "failed", error: piece.output } : { phase: "after" };
        wanted.push(...(await tell(given.snapshot, { ...ended, ...piece }, fileOf(piece.args))));
      }
      return context(wanted);
    },
  },
};
