"""The operations of a session as flows (see `flow`), for both the blocking and
the asyncio client."""

import os
from functools import partial
from pathlib import Path as Directory
from typing import Any, List, Optional, Sequence, Tuple

from . import calls, files
from .call import Call
from .files import Data, as_bytes, as_text, hash_of
from .flow import Aside, Flow, Link, Without, ask, say
from .refusals import NoMatch
from .shapes import Change, FileEdited, FileState, FileWritten, Path, SessionOpened

Lines = Tuple[int, int]


class Work:
    """The flows of one session."""

    def __init__(self, id: str, root: Directory) -> None:
        self.id = id
        self.root = root
        self.link = Link()

    def target(self, path: Path) -> Directory:
        """Returns the file's path on disk."""
        return self.root / os.fsdecode(path)

    def open(self, call: "Call[SessionOpened]") -> Flow[Optional[SessionOpened]]:
        try:
            return (yield from ask(self.link, call))
        except Without as without:
            say(without)
            return None

    def read(self, path: Path, lines: Optional[Lines], step: Optional[int]) -> Flow[bytes]:
        """Returns the bytes on disk, and records them as what entered the
        context (SEEN-1)."""
        data: bytes = yield Aside(partial(files.read, self.target(path)))
        kept = data.splitlines(keepends=True) if lines else []
        call = calls.file_read(
            self.id,
            path,
            hash=hash_of(data),
            range={"start": lines[0], "end": min(lines[1], max(len(kept), 1))} if lines else None,
            step=step,
        )
        try:
            yield from ask(self.link, call)
        except Without as without:
            say(without)
        return b"".join(kept[lines[0] - 1:lines[1]]) if lines else data

    def write(
        self, path: Path, data: Data, force: bool, create_directories: bool, step: Optional[int]
    ) -> Flow[Optional[FileWritten]]:
        """Writes a file through the daemon, unless its content differs from
        what the session saw last (GUARD-4)."""
        content = as_bytes(data)
        call = calls.file_write(
            self.id,
            path,
            force=force or None,
            create_directories=create_directories or None,
            step=step,
            **files.spoken(content),
        )
        try:
            return (yield from ask(self.link, call))
        except Without as without:
            say(without)
            yield Aside(partial(files.write, self.target(path), content, create_directories))
            return None

    def replace(
        self, path: Path, old: str, new: str, everywhere: bool, force: bool, step: Optional[int]
    ) -> Flow[Optional[FileEdited]]:
        call = calls.file_edit(
            self.id, path, old, new, replace_all=everywhere or None, force=force or None, step=step
        )
        try:
            # The request is not repeated, because the text to replace may occur
            # in the new one again.
            return (yield from ask(self.link, call, repeatable=False))
        except Without as without:
            say(without)
            target = self.target(path)
            text = as_text((yield Aside(partial(files.read, target))))
            content = as_bytes(replaced(text, old, new, everywhere, path))
            yield Aside(partial(files.write, target, content))
            return None

    def states(self, paths: Optional[Sequence[Path]]) -> Flow[List[FileState]]:
        return (yield from every(calls.file_status(self.id, paths=paths), "files"))

    def changed(self) -> Flow[List[Change]]:
        """Returns what others have changed since the last call. Each change is
        returned once (MOD-2). Empty if no daemon can be reached."""
        changes: List[Change] = []
        more: Optional[bool] = True
        while more:
            try:
                # With an implicit acknowledgement, changes whose answer is lost
                # would never be delivered.
                taken = yield from ask(self.link, calls.modified_take(self.id, ack="explicit"))
                changes.extend(taken["changes"])
                if taken["changes"]:
                    yield from ask(self.link, calls.modified_ack(self.id, taken["cursor"]))
            except Without as without:
                say(without)
                return changes
            more = taken.get("more")
        return changes


def every(call: "Call[Any]", member: str) -> Flow[List[Any]]:
    """Returns all rows of a list. Sends requests until the list is complete
    (LIM-2)."""
    rows: List[Any] = []
    cursor: Optional[str] = None
    name = "before" if call.method == "file/history" else "cursor"
    while True:
        params = call.params if cursor is None else {**call.params, name: cursor}
        answer = yield Call[Any](call.method, params)
        rows.extend(answer[member])
        cursor = answer.get("more")
        if cursor is None:
            return rows


def replaced(text: str, old: str, new: str, everywhere: bool, path: Path) -> str:
    """Returns a text with another text replaced: exactly one occurrence, or
    every one."""
    matches = text.count(old) if old else 0
    if matches == 0 or (matches > 1 and not everywhere):
        name = os.fsdecode(path)
        what = "is not there" if matches == 0 else f"is there {matches} times"
        data = {"code": "noMatch", "path": name, "matches": matches, "hint": "name a text that is there once"}
        raise NoMatch(f"the text to replace {what}: {name}", -32018, data)
    return text.replace(old, new)


__all__ = ["Work", "every"]
