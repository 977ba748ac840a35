//! How each agent spells its events, from its documents.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// One agent in one session.
#[derive(Clone, Debug)]
pub struct Voice {
    /// The agent: `claude`, `codex`, `gemini`, `cursor`, `opencode`.
    pub agent: &'static str,
    /// Its name of the session.
    pub session: String,
    /// Where it works.
    pub cwd: PathBuf,
    /// The sub-agent that speaks (Claude).
    pub child: Option<String>,
}

/// The name of an event, as its answer's schema goes by.
pub fn event_name<'a>(agent: &str, event: &'a Value) -> &'a str {
    let field = match agent {
        "opencode" => "phase",
        _ => "hook_event_name",
    };
    event[field].as_str().unwrap_or_default()
}

fn merge(mut base: Value, more: Value) -> Value {
    if let (Value::Object(base), Value::Object(more)) = (&mut base, more) {
        base.extend(more);
    }
    base
}

impl Voice {
    /// An agent in a session.
    pub fn new(agent: &'static str, session: &str, cwd: &Path) -> Self {
        Self {
            agent,
            session: session.into(),
            cwd: cwd.into(),
            child: None,
        }
    }

    /// The same agent's sub-agent.
    #[must_use]
    pub fn sub_agent(&self, id: &str) -> Self {
        Self {
            child: Some(id.into()),
            ..self.clone()
        }
    }

    /// An event by its name, with what all of the agent's events carry.
    pub fn event(&self, name: &str, more: Value) -> Value {
        let session = &self.session;
        let base = match self.agent {
            "claude" => json!({"session_id": session, "prompt_id": "p1", "cwd": self.cwd,
                "transcript_path": format!("/h/.claude/projects/x/{session}.jsonl"),
                "permission_mode": "default", "hook_event_name": name}),
            "codex" => json!({"session_id": session, "turn_id": "u1", "cwd": self.cwd,
                "transcript_path": null, "permission_mode": "default", "model": "gpt-5-codex",
                "hook_event_name": name}),
            "gemini" => json!({"session_id": session, "cwd": self.cwd,
                "transcript_path": "/h/.gemini/tmp/x/chats/s.json", "hook_event_name": name,
                "timestamp": "2026-11-01T10:00:00Z"}),
            "cursor" => json!({"conversation_id": session, "generation_id": "g1",
                "model": "composer-2", "session_id": session, "hook_event_name": name,
                "cursor_version": "2.9.1", "workspace_roots": [self.cwd],
                "user_email": null, "transcript_path": null}),
            "opencode" => json!({"phase": name, "sessionID": session, "cwd": self.cwd}),
            other => panic!("no agent {other}"),
        };
        let base = match &self.child {
            Some(id) => merge(base, json!({"agent_id": id, "agent_type": "Explore"})),
            None => base,
        };
        merge(base, more)
    }

    fn absolute(&self, path: &str) -> PathBuf {
        self.cwd.join(path)
    }

    /// A session begins.
    pub fn start(&self, source: &str) -> Value {
        match self.agent {
            "claude" => self.event(
                "SessionStart",
                json!({"source": source, "model": "claude-opus-5"}),
            ),
            "codex" | "gemini" => self.event("SessionStart", json!({"source": source})),
            "cursor" => self.event("sessionStart", json!({"composer_mode": "agent"})),
            _ => self.event("session.created", json!({})),
        }
    }

    /// The user says something.
    pub fn prompt(&self, id: &str, text: &str) -> Value {
        match self.agent {
            "claude" => self.event("UserPromptSubmit", json!({"prompt_id": id, "prompt": text})),
            "codex" => self.event("UserPromptSubmit", json!({"turn_id": id, "prompt": text})),
            "gemini" => self.event("BeforeAgent", json!({"prompt": text})),
            "cursor" => self.event(
                "beforeSubmitPrompt",
                json!({"generation_id": id, "prompt": text, "attachments": []}),
            ),
            _ => self.event("prompt", json!({"messageID": id, "text": text})),
        }
    }

    /// Before or after a tool.
    fn tool(&self, after: bool, call: &str, name: &str, input: Value, output: Value) -> Value {
        let (before_name, after_name) = match self.agent {
            "claude" | "codex" => ("PreToolUse", "PostToolUse"),
            "gemini" => ("BeforeTool", "AfterTool"),
            "cursor" => ("preToolUse", "postToolUse"),
            _ => ("before", "after"),
        };
        let tool = match self.agent {
            "opencode" => json!({"tool": name, "callID": call, "args": input}),
            "gemini" => json!({"tool_name": name, "tool_input": input}),
            _ => json!({"tool_name": name, "tool_input": input, "tool_use_id": call}),
        };
        if !after {
            return self.event(before_name, tool);
        }
        let output = match self.agent {
            "claude" => json!({"tool_response": output, "duration_ms": 12}),
            "codex" => json!({"tool_response": output}),
            "gemini" => json!({"tool_response": {"llmContent": output, "returnDisplay": "x"}}),
            "cursor" => json!({"tool_output": output.to_string(), "duration": 12}),
            _ => json!({"output": output, "metadata": {}}),
        };
        self.event(after_name, merge(tool, output))
    }

    fn read(&self, after: bool, call: &str, path: &str, text: &str) -> Value {
        let absolute = self.absolute(path);
        let lines = text.lines().count();
        match self.agent {
            "claude" => self.tool(
                after,
                call,
                "Read",
                json!({"file_path": absolute}),
                json!({"type": "text", "file": {"filePath": absolute, "content": text,
                    "numLines": lines, "startLine": 1, "totalLines": lines}}),
            ),
            "codex" => self.shell(after, call, &format!("sed -n '1,400p' {path}"), text),
            "gemini" => self.tool(
                after,
                call,
                "read_file",
                json!({"file_path": absolute}),
                json!(text),
            ),
            "cursor" => self.tool(
                after,
                call,
                "Read",
                json!({"file_path": absolute}),
                json!({"content": text}),
            ),
            _ => self.tool(
                after,
                call,
                "read",
                json!({"filePath": absolute}),
                json!(text),
            ),
        }
    }

    /// A tool is about to read a file.
    pub fn before_read(&self, call: &str, path: &str) -> Value {
        self.read(false, call, path, "")
    }

    /// It has.
    pub fn after_read(&self, call: &str, path: &str, text: &str) -> Value {
        self.read(true, call, path, text)
    }

    fn edit(&self, after: bool, call: &str, path: &str, old: &str, new: &str) -> Value {
        let absolute = self.absolute(path);
        let strings = json!({"file_path": absolute, "old_string": old, "new_string": new});
        match self.agent {
            "claude" => self.tool(
                after,
                call,
                "Edit",
                strings,
                json!({"filePath": absolute, "oldString": old, "newString": new,
                    "userModified": false, "replaceAll": false}),
            ),
            "codex" => {
                let minus: String = old.lines().map(|line| format!("-{line}\n")).collect();
                let plus: String = new.lines().map(|line| format!("+{line}\n")).collect();
                let patch = format!(
                    "*** Begin Patch\n*** Update File: {path}\n@@\n{minus}{plus}*** End Patch\n"
                );
                let output = json!(format!("Success. Updated the following files:\nM {path}\n"));
                self.tool(
                    after,
                    call,
                    "apply_patch",
                    json!({"command": patch}),
                    output,
                )
            }
            "gemini" => self.tool(
                after,
                call,
                "replace",
                strings,
                json!("Successfully modified"),
            ),
            "cursor" => self.tool(after, call, "StrReplace", strings, json!({"success": true})),
            _ => self.tool(
                after,
                call,
                "edit",
                json!({"filePath": absolute, "oldString": old, "newString": new}),
                json!(""),
            ),
        }
    }

    /// A tool is about to replace whole lines.
    pub fn before_edit(&self, call: &str, path: &str, old: &str, new: &str) -> Value {
        self.edit(false, call, path, old, new)
    }

    /// It has.
    pub fn after_edit(&self, call: &str, path: &str, old: &str, new: &str) -> Value {
        self.edit(true, call, path, old, new)
    }

    fn write(&self, after: bool, call: &str, path: &str, content: &str) -> Value {
        let absolute = self.absolute(path);
        let whole = json!({"file_path": absolute, "content": content});
        let done = json!({"filePath": absolute, "success": true});
        match self.agent {
            "claude" | "cursor" => self.tool(after, call, "Write", whole, done),
            "gemini" => self.tool(
                after,
                call,
                "write_file",
                whole,
                json!("Successfully created"),
            ),
            "codex" => {
                let plus: String = content.lines().map(|line| format!("+{line}\n")).collect();
                let patch = format!("*** Begin Patch\n*** Add File: {path}\n{plus}*** End Patch\n");
                self.tool(after, call, "apply_patch", json!({"command": patch}), done)
            }
            _ => self.tool(
                after,
                call,
                "write",
                json!({"filePath": absolute, "content": content}),
                json!(""),
            ),
        }
    }

    /// A tool is about to write a whole file.
    pub fn before_write(&self, call: &str, path: &str, content: &str) -> Value {
        self.write(false, call, path, content)
    }

    /// It has.
    pub fn after_write(&self, call: &str, path: &str, content: &str) -> Value {
        self.write(true, call, path, content)
    }

    fn shell(&self, after: bool, call: &str, command: &str, output: &str) -> Value {
        let input = json!({"command": command});
        match self.agent {
            "claude" => self.tool(
                after,
                call,
                "Bash",
                merge(input, json!({"description": "x"})),
                json!({"stdout": output, "stderr": "", "interrupted": false, "isImage": false}),
            ),
            "codex" => self.tool(after, call, "Bash", input, json!(output)),
            "gemini" => self.tool(after, call, "run_shell_command", input, json!(output)),
            "cursor" => merge(
                self.tool(after, call, "Shell", input, json!({"output": output})),
                json!({"cwd": self.cwd}),
            ),
            _ => self.tool(after, call, "bash", input, json!(output)),
        }
    }

    /// A command is about to run.
    pub fn before_shell(&self, call: &str, command: &str) -> Value {
        self.shell(false, call, command, "")
    }

    /// It has.
    pub fn after_shell(&self, call: &str, command: &str, output: &str) -> Value {
        self.shell(true, call, command, output)
    }

    /// All tools of a turn have run, where the agent says so.
    pub fn batch_end(&self) -> Option<Value> {
        (self.agent == "claude").then(|| self.event("PostToolBatch", json!({"tool_calls": []})))
    }

    /// The context was compacted, or is about to be.
    pub fn compacted(&self) -> Value {
        match self.agent {
            "claude" | "codex" => self.event(
                "PostCompact",
                json!({"trigger": "auto", "compact_summary": "x"}),
            ),
            "gemini" => self.event("PreCompress", json!({"trigger": "manual"})),
            "cursor" => self.event("preCompact", json!({"trigger": "auto"})),
            _ => self.event("session.compacted", json!({})),
        }
    }

    /// The agent stops for now.
    pub fn stop(&self) -> Value {
        match self.agent {
            "claude" => self.event(
                "Stop",
                json!({"stop_hook_active": false, "last_assistant_message": "done",
                    "background_tasks": [], "session_crons": []}),
            ),
            "codex" => self.event("Stop", json!({"stop_hook_active": false})),
            "gemini" => self.event(
                "AfterAgent",
                json!({"prompt": "x", "prompt_response": "y", "stop_hook_active": false}),
            ),
            "cursor" => self.event("stop", json!({"status": "completed", "loop_count": 0})),
            _ => self.event("session.idle", json!({})),
        }
    }

    /// The session ends.
    pub fn end(&self) -> Value {
        match self.agent {
            "claude" | "codex" => self.event("SessionEnd", json!({"reason": "other"})),
            "gemini" => self.event("SessionEnd", json!({"reason": "exit"})),
            "cursor" => self.event("sessionEnd", json!({"reason": "completed"})),
            _ => self.event("session.deleted", json!({})),
        }
    }

    /// One event of every kind, for tests that change them.
    pub fn all(&self) -> Vec<Value> {
        let mut all = vec![
            self.start("startup"),
            self.prompt("p1", "look at @a.txt"),
            self.before_read("1", "a.txt"),
            self.after_read("1", "a.txt", "one\n"),
            self.before_edit("2", "a.txt", "one", "two"),
            self.after_edit("2", "a.txt", "one", "two"),
            self.before_write("3", "new.txt", "text\n"),
            self.after_write("3", "new.txt", "text\n"),
            self.before_shell("4", "cat a.txt"),
            self.after_shell("4", "cat a.txt", "one\n"),
            self.compacted(),
            self.stop(),
        ];
        all.extend(self.batch_end());
        all.push(self.end());
        all
    }
}
