"""Backends of the agent's tools other than the client library: plain file
tools with hooks around them, and an MCP server. The task is the same."""

import json
import subprocess
from typing import Any, Callable, Dict, List, Optional

from examples.agent import ToolRefused, notice

from .world import BINARY, World


class HooksBackend:
    """An agent's own plain tools. `touchmark hook claude` runs before and
    after each, as Claude Code runs it."""

    def __init__(self, world: World, session: str) -> None:
        self.world = world
        self.session = session
        self.calls = 0
        self.heard: List[str] = []
        self.event("SessionStart", source="startup")

    def event(self, name: str, **fields: Any) -> Dict[str, Any]:
        said = {
            "session_id": self.session,
            "transcript_path": "/tmp/t.jsonl",
            "cwd": str(self.world.root),
            "permission_mode": "default",
            "hook_event_name": name,
            **fields,
        }
        done = subprocess.run(
            [BINARY, "hook", "claude"],
            cwd=self.world.root,
            # The long deadline keeps a busy machine from changing the result.
            env={**self.world.environ, "TOUCHMARK_HOOK_MS": "30000"},
            input=json.dumps(said),
            stdout=subprocess.PIPE,
            universal_newlines=True,
            check=True,
        )
        printed: Dict[str, Any] = json.loads(done.stdout).get("hookSpecificOutput", {})
        return printed

    def around(self, tool: str, given: Dict[str, Any], run: Callable[[], Any]) -> Any:
        """Runs the hook before the tool, the tool, and the hook after it."""
        self.calls += 1
        words = {"tool_name": tool, "tool_use_id": f"toolu_{self.calls}", "tool_input": given}
        asked = self.event("PreToolUse", **words)
        if asked.get("permissionDecision") == "deny":
            raise ToolRefused(asked["permissionDecisionReason"])
        try:
            made = run()
        except (OSError, ValueError) as error:
            self.event("PostToolUseFailure", **words, error=str(error))
            raise ToolRefused(str(error)) from error
        self.hear(self.event("PostToolUse", **words, tool_response=made))
        return made

    def hear(self, printed: Dict[str, Any]) -> None:
        said = printed.get("additionalContext")
        if said is not None:
            self.heard.append(said)

    def name(self, path: str) -> str:
        return str(self.world.path(path))

    def read_file(self, path: str) -> str:
        def run() -> Dict[str, Any]:
            text = self.world.text(path)
            lines = text.count("\n")
            file = {"filePath": self.name(path), "content": text, "numLines": lines, "startLine": 1, "totalLines": lines}
            return {"type": "text", "file": file}

        return str(self.around("Read", {"file_path": self.name(path)}, run)["file"]["content"])

    def write_file(self, path: str, text: str) -> str:
        def run() -> Dict[str, Any]:
            self.world.write(path, text)
            return {"type": "update", "filePath": self.name(path), "content": text}

        self.around("Write", {"file_path": self.name(path), "content": text}, run)
        return f"File written: {path}"

    def edit_file(self, path: str, old: str, new: str) -> str:
        def run() -> Dict[str, Any]:
            before = self.world.text(path)
            if before.count(old) != 1:
                raise ValueError(f"the text to replace is there {before.count(old)} times")
            self.world.write(path, before.replace(old, new))
            return {"filePath": self.name(path), "oldString": old, "newString": new, "originalFile": before}

        given = {"file_path": self.name(path), "old_string": old, "new_string": new, "replace_all": False}
        self.around("Edit", given, run)
        return f"File edited: {path}"

    def grep(self, pattern: str) -> str:
        def run() -> Dict[str, Any]:
            return {"mode": "content", "content": plain(self.world, ["grep", "-rn", pattern, "--include=*.py", "."])}

        return str(self.around("Grep", {"pattern": pattern}, run)["content"])

    def bash(self, command: str) -> str:
        def run() -> Dict[str, Any]:
            return {"stdout": plain(self.world, ["sh", "-c", command]), "stderr": "", "interrupted": False}

        return str(self.around("Bash", {"command": command}, run)["stdout"])

    def notices(self) -> List[str]:
        self.hear(self.event("PostToolBatch", tool_calls=[]))
        heard, self.heard = self.heard, []
        return heard


class McpBackend:
    """The tools of `touchmark mcp`. The shell runs in a command window, by
    `touchmark run`."""

    def __init__(self, world: World, session: str) -> None:
        self.world = world
        self.session = session
        self.server = subprocess.Popen(
            [BINARY, "--workspace", str(world.root), "mcp", "--session", session],
            cwd=world.root,
            env=world.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )
        self.asked = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
        self.request("initialize", hello)
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def say(self, message: Dict[str, Any]) -> None:
        assert self.server.stdin is not None
        self.server.stdin.write(json.dumps(message) + "\n")
        self.server.stdin.flush()

    def request(self, method: str, params: Dict[str, Any]) -> Any:
        assert self.server.stdout is not None
        self.asked += 1
        self.say({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params})
        while True:
            message = json.loads(self.server.stdout.readline())
            if message.get("id") == self.asked and "method" not in message:
                return message["result"]

    def call(self, tool: str, **given: Any) -> Dict[str, Any]:
        result = self.request("tools/call", {"name": tool, "arguments": given})
        if result.get("isError"):
            raise ToolRefused(result["content"][0]["text"])
        done: Dict[str, Any] = result["_meta"]["touchmark/result"]
        return done

    def read_file(self, path: str) -> str:
        read = self.call("read_file", path=path)
        text: Optional[str] = read.get("text")
        return str(read.get("message")) if text is None else text

    def write_file(self, path: str, text: str) -> str:
        self.call("write_file", path=path, text=text)
        return f"File written: {path}"

    def edit_file(self, path: str, old: str, new: str) -> str:
        self.call("edit_file", path=path, oldString=old, newString=new)
        return f"File edited: {path}"

    def grep(self, pattern: str) -> str:
        found = self.call("grep", pattern=pattern)
        return "\n".join(f"{one['path']}:{one['line']}:{one['text']}" for one in found["matches"])

    def bash(self, command: str) -> str:
        run = [BINARY, "--quiet", "run", "--session", self.session, "--", "sh", "-c", command]
        return plain(self.world, run)

    def notices(self) -> List[str]:
        return [notice(change) for change in self.call("changed_files")["changes"]]

    def close(self) -> None:
        assert self.server.stdin is not None and self.server.stdout is not None
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()


def plain(world: World, command: List[str]) -> str:
    """Returns what a command prints, with its exit code."""
    done = subprocess.run(
        command,
        cwd=world.root,
        env=world.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    return f"{done.stdout}[exit code {done.returncode}]"
