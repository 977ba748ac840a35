"""A guarded edit of one file: marked while it lasts, written against what it
was computed from, committed at its end."""

import os
from functools import partial
from typing import Optional

from . import calls, files
from .files import Data, as_bytes, as_text, hash_of
from .flow import Aside, Flow, Without, ask, say
from .refusals import Conflict, Stale, UnknownEdit
from .shapes import FileState, FileWritten, Path
from .work import Work, replaced


class Draft:
    """What a file holds, and what it is to hold. Nothing is written before
    the end of the `with` block."""

    def __init__(
        self,
        work: Work,
        path: Path,
        *,
        wait: Optional[float] = None,
        force: bool = False,
        create_directories: bool = False,
        tool: Optional[str] = None,
        step: Optional[int] = None,
    ) -> None:
        self.path = path
        self.target = work.target(path)
        # The file as the session knows it at the mark; None without a daemon.
        self.before: Optional[FileState] = None
        # What came of it; None before the end, without a daemon, and where
        # nothing was written.
        self.written: Optional[FileWritten] = None
        self._work = work
        self._wait_ms = None if wait is None else int(wait * 1000)
        self._force = force
        self._create_directories = create_directories
        self._tool = tool
        self._step = step
        # Its own name of the edit: one whose answer never came can be aborted.
        self._call_id = os.urandom(8).hex()
        self._marked = False
        self._base: Optional[bytes] = None
        self._content: Optional[bytes] = None

    @property
    def exists(self) -> bool:
        """Whether there was a file at the mark."""
        return self._base is not None

    @property
    def data(self) -> bytes:
        """What the file holds or is to hold; empty for one that is not there."""
        content = self._base if self._content is None else self._content
        return content or b""

    @property
    def text(self) -> str:
        """The same as text."""
        return as_text(self.data)

    def write(self, data: Data) -> None:
        """This is what the file is to hold."""
        self._content = as_bytes(data)

    def replace(self, old: str, new: str, *, everywhere: bool = False) -> None:
        """Replaces a text that is there once (`NoMatch` otherwise), or wherever it is."""
        self.write(replaced(self.text, old, new, everywhere, self.path))

    def begin(self) -> Flow[None]:
        """Marks the file, and reads what the draft starts from."""
        link = self._work.link
        call = calls.edit_begin(
            self._work.id,
            [{"path": self.path}],  # type: ignore[typeddict-item] # names may be bytes
            bind=True,
            call_id=self._call_id,
            force=self._force or None,
            wait_ms=self._wait_ms,
            tool=self._tool,
            step=self._step,
        )
        while True:
            self._marked = True
            try:
                begun = yield from ask(link, call)
            except Without as without:
                self._marked = False
                say(without)
                self._base = yield Aside(partial(files.read_or_none, self.target))
                return
            self.before = begun["files"][0]
            self._base = yield Aside(partial(files.read_or_none, self.target))
            if (None if self._base is None else hash_of(self._base)) == self.before.get("hash"):
                return
            # Saved since the mark: the next mark says whether it was read.
            yield from self.abort()

    def finish(self) -> Flow[None]:
        """Writes what is new, and commits; without anything new, aborts."""
        content = self._content
        if content is None or content == self._base:
            yield from self.abort()
            return
        if self.before is None:
            yield from self._plainly(content)
            return
        try:
            yield from self._guarded(content)
        except Without as without:
            say(without)
            yield from self._plainly(content)

    def _guarded(self, content: bytes) -> Flow[None]:
        link = self._work.link
        call = calls.file_write(
            self._work.id,
            self.path,
            base=None if self._base is None else hash_of(self._base),
            force=self._force or None,
            create_directories=self._create_directories or None,
            step=self._step,
            **files.spoken(content),
        )
        try:
            self.written = yield from ask(link, call)
        except (Conflict, Stale):
            # The mark took the save in between for the session's own. Asked
            # again without it, the refusal says whose it was.
            yield from self.abort()
            self.written = yield from ask(link, call)
        except BaseException:
            yield from self.abort()
            raise
        if not self._marked:
            return
        self._marked = False
        commit = calls.edit_commit(
            session=self._work.id,
            call_id=self._call_id,
            files=[{"path": self.path, "hash": hash_of(content)}],  # type: ignore[typeddict-item]
        )
        try:
            yield from ask(link, commit)
        except UnknownEdit:
            # It ended with a connection that was lost; the write is declared
            # and recorded without it.
            pass

    def _plainly(self, content: bytes) -> Flow[None]:
        now: Optional[bytes] = yield Aside(partial(files.read_or_none, self.target))
        if now != self._base and not self._force:
            raise Stale(
                f"{self.target} has changed since the edit began",
                -32011,
                {"code": "stale", "path": str(self.target), "hint": "read the file again, then repeat the edit"},
            )
        yield Aside(partial(files.write, self.target, content, self._create_directories))

    def abort(self) -> Flow[None]:
        """Nothing of it counts."""
        if not self._marked:
            return
        self._marked = False
        try:
            yield from ask(self._work.link, calls.edit_abort(session=self._work.id, call_id=self._call_id))
        except (Without, UnknownEdit):
            # There is none; or the daemon ends it with the connection (ATTR-9).
            pass


__all__ = ["Draft"]
