"""A session, and what it does, over a blocking client."""

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

    Where there is no daemon to be had, `read`, `write`, `replace`, `edit`,
    `changed` and wrapped tools go on without tracking and say so once, as a
    warning; every other method raises `Unreachable`.
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
        # What changed while it was away (a look, not a take); None without a daemon.
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
        """A file's text, or lines (`(1, 20)`) of it, recorded as read."""
        return as_text(self.read_bytes(path, lines=lines, step=step))

    def read_bytes(self, path: Path, *, lines: Optional[Lines] = None, step: Optional[int] = None) -> bytes:
        """The same as bytes."""
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
        """Writes a file through the daemon. Raises `NotRead`, `Stale`, `Busy`,
        `Conflict`; None where nothing is tracked."""
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
        """Replaces a text that is there once (`NoMatch` otherwise), guarded likewise."""
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
        """A guarded edit: `with session.edit("a.py") as f: f.replace("x", "y")`.

        The file is marked while the block lasts (so that other sessions keep
        off, for `wait` seconds where they hold it), written at its end if it
        is still what `f.text` said, and committed; an exception aborts.
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
        """What the session's copies of these files are worth now; of all it
        knows, if none is named."""
        return self.client.run(self.work.states(paths or None))

    def changed(self) -> List[Change]:
        """What others changed since this was asked last; each is told once."""
        return self.client.run(self.work.changed())

    def rows(self, call: "Call[Any]", member: str) -> List[Any]:
        """All rows of a list: `session.rows(calls.file_list(session.id), "files")`."""
        return self.client.rows(call, member)

    def tools(self, rules: Rules = Rules()) -> "Tools":
        """Tools that do not do twice what was done already."""
        return Tools(self, rules)

    def close(self, *, forget: bool = False) -> Done:
        """Ends the session: open edits are aborted; `forget` removes what it knew."""
        return self.session_close(forget=forget or None)


class Tools:
    """The tools of one session."""

    def __init__(self, session: Session, rules: Rules) -> None:
        self._client = session.client
        self._tooling = Tooling(session.work, rules)

    def wrap(self, name: str, tool: Callable[..., Any]) -> Callable[..., Answer]:
        """A tool, called by keyword. Its name decides how calls are compared,
        and whether they are kept at all (`calls.rules`, `calls.never`)."""

        def wrapped(**args: Any) -> Answer:
            return self._client.run(self._tooling.call(name, args, partial(tool, **args)))

        return wrapped

    def read_file(self, path: Path) -> Answer:
        """A file's text, or one line in place of what is in the context already."""
        return self._client.run(self._tooling.read_file(path))

    def write_file(self, path: Path, data: Data) -> Answer:
        """Writes a file, guarded; the next read of it is full."""
        return self._client.run(self._tooling.write_file(path, data))


class Feed:
    """Events of a workspace, across restarts of its daemon. An iterator that
    ends only with an error: `NoDaemon` when no other daemon came within
    `patience` seconds."""

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
        # A connection of its own, which starts nothing: whoever works starts.
        self._client = Client(client.workspace, hello=client.hello, start=False, deadline=client.deadline)
        self._following = Following(kinds, session, since, patience)
        self._client.run(self._following.reconnect())

    @property
    def since(self) -> Optional[str]:
        """The clock of the last event handed out: where another feed would go on."""
        return self._following.since

    def next(self, wait: Optional[float] = None) -> Union[Event, Gap, None]:
        """The next event or gap, or None after `wait` seconds of a living daemon."""
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
    """A session in the current directory's workspace, whose daemon is started
    where none runs."""
    return Session(Client(workspace), id, agent=agent, parent=parent)


__all__ = ["Feed", "Session", "Tools", "open_session"]
