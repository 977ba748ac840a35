"""An agent's loop: a model requests tools, and the tools use touchmark.

The model is a generator that is sent each tool's result and yields the next
step. Here it is a script, so that the loop runs without a network. The tools
are a `Backend`, which can be exchanged: this one uses the client library.

    python3 examples/agent.py     # a small task in a temporary repository
"""

import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Generator, List, NamedTuple, Optional, Protocol

import touchmark_client


class Step(NamedTuple):
    """A step of the model: the name of a tool, with its arguments."""

    tool: str
    args: Dict[str, Any]


class Result(NamedTuple):
    """What the model receives: the tool's text, whether the tool was refused,
    and what others have changed meanwhile."""

    text: str
    refused: bool = False
    notices: List[str] = []


class ToolRefused(Exception):
    """The tool was refused and did nothing. The text is for the model."""


class Backend(Protocol):
    """The agent's tools. Each returns a text, or raises `ToolRefused`."""

    def read_file(self, path: str) -> str: ...
    def write_file(self, path: str, text: str) -> str: ...
    def edit_file(self, path: str, old: str, new: str) -> str: ...
    def grep(self, pattern: str) -> str: ...
    def bash(self, command: str) -> str: ...
    def notices(self) -> List[str]: ...


Model = Generator[Step, Result, str]


def run(model: Model, backend: Backend, before: Optional[Callable[[int, Step], None]] = None) -> str:
    """Runs the loop until the model has an answer. `before` is called before
    each tool, as an agent's hooks are."""
    turn = 0
    try:
        step = next(model)
        while True:
            turn += 1
            if before is not None:
                before(turn, step)
            try:
                text, refused = getattr(backend, step.tool)(**step.args), False
            except ToolRefused as error:
                text, refused = str(error), True
            step = model.send(Result(text, refused, backend.notices()))
    except StopIteration as end:
        return str(end.value)


class ClientBackend:
    """The tools, over a touchmark session."""

    def __init__(self, session: touchmark_client.Session) -> None:
        self.session = session
        self.tools = session.tools()

    def read_file(self, path: str) -> str:
        try:
            return self.tools.read_file(path).text
        except touchmark_client.Refused as error:
            raise ToolRefused(f"{error}. {error.hint}.") from error

    def write_file(self, path: str, text: str) -> str:
        try:
            self.session.write(path, text)
        except touchmark_client.Refused as error:
            raise ToolRefused(f"{error}. {error.hint}.") from error
        return f"File written: {path}"

    def edit_file(self, path: str, old: str, new: str) -> str:
        try:
            with self.session.edit(path, tool="edit_file") as f:
                f.replace(old, new)
        except touchmark_client.Refused as error:
            raise ToolRefused(f"{error}. {error.hint}.") from error
        return f"File edited: {path}"

    def grep(self, pattern: str) -> str:
        found = self.session.search_grep(pattern)
        return "\n".join(f"{one['path']}:{one['line']}:{one['text']}" for one in found["matches"])

    def bash(self, command: str) -> str:
        # What the command writes while it runs is attributed to the session.
        window = self.session.command_begin(label=command, bind=True)
        done = subprocess.run(
            command,
            shell=True,
            cwd=self.session.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
        )
        self.session.command_end(command=window["command"])
        return f"{done.stdout}[exit code {done.returncode}]"

    def notices(self) -> List[str]:
        return [notice(change) for change in self.session.changed()]


def notice(change: touchmark_client.shapes.Change) -> str:
    """Returns a sentence about a change, for the model."""
    names = {"user": "the user", "unknown": "somebody"}
    who = ", ".join(names.get(one["kind"], f"session {one.get('session')}") for one in change["changedBy"])
    return f"{change['path']} was {change['kind']} by {who}"


def example() -> None:
    """Runs a task of three steps. A user saves a file in between."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "greet.py"
        file.write_text("print('hello')\n")
        client = touchmark_client.Client(touchmark_client.Workspace.at(directory))
        session = touchmark_client.Session(client, "example")

        def model() -> Model:
            yield Step("read_file", {"path": "greet.py"})
            edit = Step("edit_file", {"path": "greet.py", "old": "hello", "new": "good morning"})
            told = yield edit
            if told.refused:
                print("refused:", told.text)
                yield Step("read_file", {"path": "greet.py"})
                yield edit
            return "done"

        def user(turn: int, step: Step) -> None:
            if turn == 2:
                file.write_text("# the user was here\nprint('hello')\n")

        print(run(model(), ClientBackend(session), user))
        print(file.read_text(), end="")
        client.shutdown()


if __name__ == "__main__":
    example()
