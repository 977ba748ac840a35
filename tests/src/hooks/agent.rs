//! An agent as a separate process, with its hooks, its MCP server and its
//! commands as the system sees them.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::{Heard, Voice, heard};
use crate::mcp::Era;
use crate::process::until;
use crate::world::binary;
use crate::{Mcp, World};

/// The agent's own process, a shell script. It starts the MCP server, and then
/// executes orders, each with a file: send the file to a hook as an event, or
/// run it as a command in a separate system session, as agents do. Only
/// processes that it starts run below it.
const AGENT: &str = r#"
exec 3<&0
"$0" mcp <&3 3<&- &
mcp=$!
exec 3<&-
while read -r what file; do
    case $what in
    hook)
        "$0" hook "$2" < "$file" > "$file.out"
        mv "$file.out" "$file.said"
        ;;
    run)
        AGENT_SESSION=$3 setsid sh "$file" < /dev/null > "$file.out" 2>&1 &
        ;;
    esac
done < "$1"
wait "$mcp"
"#;

/// A running agent with hooks, an MCP server and commands.
pub struct Agent<'a> {
    /// The world with the workspace and the daemon.
    pub world: &'a World,
    /// The format of its events.
    pub voice: Voice,
    /// Its MCP server.
    pub mcp: Mcp,
    files: PathBuf,
    told: Option<File>,
    told_so_far: u32,
}

/// Returns a session id as long as those of agents, and different in each
/// world, since processes of commands are recognised by it.
pub fn session(world: &World) -> String {
    let name = world.state().to_string_lossy().replace('/', "-");
    format!("conversation{name}")
}

/// Returns a command that waits for a file, for at most a minute.
pub fn wait_for(file: &str) -> String {
    format!("n=0; while [ ! -e {file} ] && [ $n -lt 3000 ]; do n=$((n+1)); sleep 0.02; done")
}

impl<'a> Agent<'a> {
    /// Starts an agent. `client` is the name that it sends to MCP servers.
    pub fn new(world: &'a World, agent: &'static str, client: &str, session: &str) -> Self {
        Self::by(world, agent, client, session, Command::new("sh"))
    }

    /// Starts an agent below a witness, as a shim does.
    pub fn witnessed(world: &'a World, agent: &'static str, session: &str) -> Self {
        let mut shim = Command::new(binary().with_file_name("touchmark-hook"));
        shim.args([agent, "run", "sh"]);
        Self::by(world, agent, agent, session, shim)
    }

    fn by(
        world: &'a World,
        agent: &'static str,
        client: &str,
        session: &str,
        mut command: Command,
    ) -> Self {
        let files = world.outside().join(format!("agent-{session}"));
        fs::create_dir_all(&files).expect("an agent");
        let fifo = files.join("told");
        let made = Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .expect("an agent");
        assert!(made.success());
        command
            .args(["-c", AGENT])
            .arg(binary())
            .arg(&fifo)
            .arg(super::voice::hook(agent))
            .arg(session)
            .current_dir(world.workspace());
        world.dress(&mut command);
        command.env("TOUCHMARK_HOOK_MS", "30000");
        let mut mcp = Mcp::raw(command, Era::Handshake);
        mcp.request(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": client, "version": "1"}}),
        );
        mcp.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let told = OpenOptions::new()
            .write(true)
            .open(&fifo)
            .expect("an agent");
        Self {
            world,
            voice: Voice::new(agent, session, world.workspace()),
            mcp,
            files,
            told: Some(told),
            told_so_far: 0,
        }
    }

    /// Starts an agent that behaves like Claude Code.
    pub fn claude(world: &'a World, session: &str) -> Self {
        Self::new(world, "claude", "claude-code", session)
    }

    fn tell(&mut self, what: &str, text: &str) -> PathBuf {
        self.told_so_far += 1;
        let file = self.files.join(format!("told-{}", self.told_so_far));
        fs::write(&file, text).expect("a file");
        let mut told = self.told.as_ref().expect("an agent at work");
        writeln!(told, "{what} {}", file.display()).expect("an agent that listens");
        file
    }

    /// Sends an event to its hook, and returns the answer.
    pub fn say(&mut self, event: &Value) -> Heard {
        let said = self.tell("hook", &event.to_string()).with_extension("said");
        until("the hook has answered", || said.exists());
        let said = fs::read_to_string(said).expect("what the hook said");
        heard(
            self.voice.agent,
            &serde_json::from_str(&said).expect("JSON"),
        )
    }

    /// Runs a command in the workspace, and does not wait for it.
    pub fn run(&mut self, command: &str) {
        self.tell("run", command);
    }

    /// Starts a conversation.
    pub fn begin(&mut self) {
        self.say(&self.voice.start("startup")).nothing();
        self.say(&self.voice.prompt("p", "go on"));
    }

    /// Reads a file with the agent's own tool.
    pub fn read(&mut self, path: &str) {
        let text = fs::read_to_string(self.world.path(path)).expect("an agent");
        self.say(&self.voice.before_read("r", path)).nothing();
        self.say(&self.voice.after_read("r", path, &text));
    }

    /// Calls a tool of its MCP server. Returns whether the call succeeded.
    pub fn call(&mut self, id: Option<&str>, tool: &str, arguments: Value) -> bool {
        let mut params = json!({"name": tool, "arguments": arguments});
        if let Some(id) = id {
            params["_meta"] = json!({"claudecode/toolUseId": id});
        }
        let answer = self.mcp.request("tools/call", params);
        answer["result"]["isError"] == false
    }

    /// Edits a file through MCP. Returns whether the edit succeeded.
    pub fn edit_by_mcp(&mut self, path: &str, old: &str, new: &str) -> bool {
        let arguments = json!({"path": path, "oldString": old, "newString": new});
        self.call(None, "edit_file", arguments)
    }

    /// Reads a file through MCP.
    pub fn read_by_mcp(&mut self, path: &str) {
        assert!(self.call(None, "read_file", json!({"path": path})));
    }

    /// Ends the agent and its MCP server.
    pub fn end(mut self) {
        drop(self.told.take());
        assert!(self.mcp.end().success());
    }
}
