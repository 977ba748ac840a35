"""A guarded edit of one file. The file is marked when the edit begins. At its
end the new content is written, if the file has not changed since, and
committed."""

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
    """The current and the new content of a file. Nothing is written before the
    end of the `with` block."""

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
        # The file's state for the session when the edit began; None without a
        # daemon.
        self.before: Optional[FileState] = None
        # The result of the write. None before the end, without a daemon, and if
        # nothing was written.
        self.written: Optional[FileWritten] = None
        self._work = work
        self._wait_ms = None if wait is None else int(wait * 1000)
        self._force = force
        self._create_directories = create_directories
        self._tool = tool
        self._step = step
        # The client's own id for the edit, which lets it abort an edit whose
        # answer never came.
        self._call_id = os.urandom(8).hex()
        self._marked = False
        self._base: Optional[bytes] = None
        self._content: Optional[bytes] = None

    @property
    def exists(self) -> bool:
        """Whether the file existed when the edit began."""
        return self._base is not None

    @property
    def data(self) -> bytes:
        """The file's new content or, before a change, its current one; empty
        if there is no file."""
        content = self._base if self._content is None else self._content
        return content or b""

    @property
    def text(self) -> str:
        """`data` as text."""
        return as_text(self.data)

    def write(self, data: Data) -> None:
        """Sets the file's new content."""
        self._content = as_bytes(data)

    def replace(self, old: str, new: str, *, everywhere: bool = False) -> None:
        """Replaces a text that occurs exactly once (else raises `NoMatch`), or
        every occurrence."""
        self.write(replaced(self.text, old, new, everywhere, self.path))

    def begin(self) -> Flow[None]:
        """Marks the file, and reads the content that the draft starts with."""
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
            # The file was saved after the mark. The next mark is refused if the
            # session has not read that content.
            yield from self.abort()

    def finish(self) -> Flow[None]:
        """Writes the new content and commits. Aborts if there is none."""
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
            # The session's mark has attributed another writer's save to the
            # session. Without the mark, the second try returns an error with
            # the right author.
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
            # The edit ended with a connection that was lost. The write was
            # declared by itself and is recorded.
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
        """Aborts the edit: none of its writes is the session's."""
        if not self._marked:
            return
        self._marked = False
        try:
            yield from ask(self._work.link, calls.edit_abort(session=self._work.id, call_id=self._call_id))
        except (Without, UnknownEdit):
            # There is no daemon, or it has ended the edit with the connection
            # (ATTR-9).
            pass


__all__ = ["Draft"]
