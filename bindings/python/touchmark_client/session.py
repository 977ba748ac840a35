"""A session and its operations, over a blocking client."""

from contextlib import contextmanager
from functools import partial
from pathlib import Path as Directory
from typing import Any, Callable, Iterator, List, Optional, Sequence, TypeVar, Union

from . import calls
from .blocking import Client
from .call import Call
from .draft import Draft
from .files import Data, as_text
from .following import Following, Gap
from .methods import SessionMethods
from .places import Workspace
from .shapes import Change, Done, Event, FileEdited, FileState, FileWritten, Path, Program, SessionOpened
from .tooling import Answer, Rules, Tooling
from .work import Lines, Work

R = TypeVar("R")


class Session(SessionMethods):
    """One agent conversation or task.

    If no daemon can be reached, `read`, `write`, `replace`, `edit`, `changed`
    and wrapped tools continue without tracking, with one warning. Every other
    method raises `Unreachable`.
    """

    def __init__(
        self,
        client: Client,
        id: str,
        *,
        agent: Optional[Program] = None,
        parent: Optional[str] = None,
        pid: Optional[int] = None,
    ) -> None:
        self.client = client
        self.id = id
        self.work = Work(id, client.workspace.root)
        # The session's state when it was opened, with what changed while it was
        # away; these changes are not marked as delivered. None without a
        # daemon.
        self.opened: Optional[SessionOpened] = client.run(
            self.work.open(calls.session_open(id, agent=agent, parent=parent, pid=pid))
        )

    @property
    def root(self) -> Directory:
        """The workspace's directory."""
        return self.work.root

    def call(self, call: "Call[R]", *, within: Optional[float] = None) -> R:
        return self.client.call(call, within=within)

    def read(self, path: Path, *, lines: Optional[Lines] = None, step: Optional[int] = None) -> str:
        """Returns a file's text, or only some lines, such as `(1, 20)`, and
        records the read."""
        return as_text(self.read_bytes(path, lines=lines, step=step))

    def read_bytes(self, path: Path, *, lines: Optional[Lines] = None, step: Optional[int] = None) -> bytes:
        """Returns a file's bytes, or those of some lines, and records the
        read."""
        return self.client.run(self.work.read(path, lines, step))

    def write(
        self,
        path: Path,
        data: Data,
        *,
        force: bool = False,
        create_directories: bool = False,
        step: Optional[int] = None,
    ) -> Optional[FileWritten]:
        """Writes a file through the daemon. Raises `NotRead`, `Stale`, `Busy`
        or `Conflict`. Returns None if no daemon can be reached."""
        return self.client.run(self.work.write(path, data, force, create_directories, step))

    def replace(
        self,
        path: Path,
        old: str,
        new: str,
        *,
        everywhere: bool = False,
        force: bool = False,
        step: Optional[int] = None,
    ) -> Optional[FileEdited]:
        """Replaces a text that occurs exactly once (else raises `NoMatch`),
        with the same checks as `write`."""
        return self.client.run(self.work.replace(path, old, new, everywhere, force, step))

    @contextmanager
    def edit(
        self,
        path: Path,
        *,
        wait: Optional[float] = None,
        force: bool = False,
        create_directories: bool = False,
        tool: Optional[str] = None,
        step: Optional[int] = None,
    ) -> Iterator[Draft]:
        """Edits a file: `with session.edit("a.py") as f: f.replace("x", "y")`.

        The file is marked during the block, so that other sessions do not edit
        it. If another session edits it now, the call waits up to `wait`
        seconds. At the end of the block the new text is written and committed,
        if the file still has the content of `f.text` at the beginning. An
        exception aborts the edit.
        """
        draft = Draft(
            self.work, path, wait=wait, force=force, create_directories=create_directories, tool=tool, step=step
        )
        try:
            self.client.run(draft.begin())
            yield draft
        except BaseException:
            self.client.run(draft.abort())
            raise
        self.client.run(draft.finish())

    def status(self, *paths: Path) -> List[FileState]:
        """Returns the state of the session's copies of these files, or of all
        that it tracks if none is named."""
        return self.client.run(self.work.states(paths or None))

    def changed(self) -> List[Change]:
        """Returns what others have changed since the last call. Each change is
        returned once."""
        return self.client.run(self.work.changed())

    def rows(self, call: "Call[Any]", member: str) -> List[Any]:
        """Returns all rows of a list:
        `session.rows(calls.file_list(session.id), "files")`."""
        return self.client.rows(call, member)

    def tools(self, rules: Rules = Rules()) -> "Tools":
        """Returns the session's tools, whose repeated calls are answered from
        the first result."""
        return Tools(self, rules)

    def close(self, *, forget: bool = False) -> Done:
        """Closes the session. Its open edits are aborted; `forget` also
        removes what it knew."""
        return self.session_close(forget=forget or None)


class Tools:
    """The tools of one session."""

    def __init__(self, session: Session, rules: Rules) -> None:
        self._client = session.client
        self._tooling = Tooling(session.work, rules)

    def wrap(self, name: str, tool: Callable[..., Any]) -> Callable[..., Answer]:
        """Wraps a tool that is called with keyword arguments. The name selects
        how calls are compared (`calls.rules`), and whether they are stored
        (`calls.never`)."""

        def wrapped(**args: Any) -> Answer:
            return self._client.run(self._tooling.call(name, args, partial(tool, **args)))

        return wrapped

    def read_file(self, path: Path) -> Answer:
        """Returns a file's text, or one sentence if the text is already in the
        context."""
        return self._client.run(self._tooling.read_file(path))

    def write_file(self, path: Path, data: Data) -> Answer:
        """Writes a file, unless it has changed since the session saw it. The
        session's next read of it returns the full text."""
        return self._client.run(self._tooling.write_file(path, data))


class Feed:
    """The events of a workspace, also after its daemon was restarted. The
    iterator ends only with an error, such as `NoDaemon` if no other daemon
    answers within `patience` seconds."""

    def __init__(
        self,
        client: Client,
        kinds: Optional[Sequence[str]] = None,
        *,
        session: Optional[str] = None,
        since: Optional[str] = None,
        patience: float = 10.0,
    ) -> None:
        client.connect()
        # The feed has a separate connection, which never starts a daemon: that
        # is left to clients that work.
        self._client = Client(client.workspace, hello=client.hello, start=False, deadline=client.deadline)
        self._following = Following(kinds, session, since, patience)
        self._client.run(self._following.reconnect())

    @property
    def since(self) -> Optional[str]:
        """The clock of the last event that was returned. Another feed can
        continue after it."""
        return self._following.since

    def next(self, wait: Optional[float] = None) -> Union[Event, Gap, None]:
        """Returns the next event or gap, or None after `wait` seconds while
        the daemon runs."""
        return self._client.run(self._following.next(wait))

    def __iter__(self) -> Iterator[Union[Event, Gap]]:
        while True:
            said = self.next()
            if said is not None:
                yield said

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> "Feed":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_session(
    id: str,
    *,
    workspace: Optional[Workspace] = None,
    agent: Optional[Program] = None,
    parent: Optional[str] = None,
) -> Session:
    """Opens a session in the current directory's workspace. Starts its daemon
    if none runs."""
    return Session(Client(workspace), id, agent=agent, parent=parent)


__all__ = ["Feed", "Session", "Tools", "open_session"]
