"""A session and its operations for asyncio. It is like `touchmark_client`,
with `await`."""

from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path as Directory
from typing import Any, AsyncIterator, Callable, Coroutine, List, Optional, Sequence, TypeVar, Union

from . import calls
from .aio_client import Client
from .call import Call
from .draft import Draft
from .files import Data, as_text
from .following import Following, Gap
from .aio_methods import SessionMethods
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

    def __init__(self, client: Client, id: str) -> None:
        self.client = client
        self.id = id
        self.work = Work(id, client.workspace.root)
        # The session's state when it was opened, with what changed while it was
        # away; these changes are not marked as delivered. None without a
        # daemon.
        self.opened: Optional[SessionOpened] = None

    @classmethod
    async def open(
        cls,
        client: Client,
        id: str,
        *,
        agent: Optional[Program] = None,
        parent: Optional[str] = None,
        pid: Optional[int] = None,
    ) -> "Session":
        """Opens a session, or reopens it."""
        session = cls(client, id)
        call = calls.session_open(id, agent=agent, parent=parent, pid=pid)
        session.opened = await client.run(session.work.open(call))
        return session

    @property
    def root(self) -> Directory:
        """The workspace's directory."""
        return self.work.root

    async def call(self, call: "Call[R]", *, within: Optional[float] = None) -> R:
        return await self.client.call(call, within=within)

    async def read(self, path: Path, *, lines: Optional[Lines] = None, step: Optional[int] = None) -> str:
        """Returns a file's text, or only some lines, such as `(1, 20)`, and
        records the read."""
        return as_text(await self.read_bytes(path, lines=lines, step=step))

    async def read_bytes(self, path: Path, *, lines: Optional[Lines] = None, step: Optional[int] = None) -> bytes:
        """Returns a file's bytes, or those of some lines, and records the
        read."""
        return await self.client.run(self.work.read(path, lines, step))

    async def write(
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
        return await self.client.run(self.work.write(path, data, force, create_directories, step))

    async def replace(
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
        return await self.client.run(self.work.replace(path, old, new, everywhere, force, step))

    @asynccontextmanager
    async def edit(
        self,
        path: Path,
        *,
        wait: Optional[float] = None,
        force: bool = False,
        create_directories: bool = False,
        tool: Optional[str] = None,
        step: Optional[int] = None,
    ) -> AsyncIterator[Draft]:
        """Edits a file: `async with session.edit("a.py") as f: f.replace("x",
        "y")`.

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
            await self.client.run(draft.begin())
            yield draft
        except BaseException:
            await self.client.run(draft.abort())
            raise
        await self.client.run(draft.finish())

    async def status(self, *paths: Path) -> List[FileState]:
        """Returns the state of the session's copies of these files, or of all
        that it tracks if none is named."""
        return await self.client.run(self.work.states(paths or None))

    async def changed(self) -> List[Change]:
        """Returns what others have changed since the last call. Each change is
        returned once."""
        return await self.client.run(self.work.changed())

    async def rows(self, call: "Call[Any]", member: str) -> List[Any]:
        """Returns all rows of a list: `await
        session.rows(calls.file_list(session.id), "files")`."""
        return await self.client.rows(call, member)

    def tools(self, rules: Rules = Rules()) -> "Tools":
        """Returns the session's tools, whose repeated calls are answered from
        the first result."""
        return Tools(self, rules)

    async def close(self, *, forget: bool = False) -> Done:
        """Closes the session. Its open edits are aborted; `forget` also
        removes what it knew."""
        return await self.session_close(forget=forget or None)


class Tools:
    """The tools of one session."""

    def __init__(self, session: Session, rules: Rules) -> None:
        self._client = session.client
        self._tooling = Tooling(session.work, rules)

    def wrap(self, name: str, tool: Callable[..., Any]) -> "Callable[..., Coroutine[Any, Any, Answer]]":
        """Wraps a tool that is called with keyword arguments; it may return an
        awaitable. The name selects how calls are compared (`calls.rules`), and
        whether they are stored (`calls.never`)."""

        async def wrapped(**args: Any) -> Answer:
            return await self._client.run(self._tooling.call(name, args, partial(tool, **args)))

        return wrapped

    async def read_file(self, path: Path) -> Answer:
        """Returns a file's text, or one sentence if the text is already in the
        context."""
        return await self._client.run(self._tooling.read_file(path))

    async def write_file(self, path: Path, data: Data) -> Answer:
        """Writes a file, unless it has changed since the session saw it. The
        session's next read of it returns the full text."""
        return await self._client.run(self._tooling.write_file(path, data))


class Feed:
    """The events of a workspace, also after its daemon was restarted. The
    iterator ends only with an error, such as `NoDaemon` if no other daemon
    answers within `patience` seconds."""

    def __init__(self, client: Client, following: Following) -> None:
        self._client = client
        self._following = following

    @classmethod
    async def open(
        cls,
        client: Client,
        kinds: Optional[Sequence[str]] = None,
        *,
        session: Optional[str] = None,
        since: Optional[str] = None,
        patience: float = 10.0,
    ) -> "Feed":
        """Subscribes to a workspace's events and returns the feed."""
        await client.connect()
        # The feed has a separate connection, which never starts a daemon: that
        # is left to clients that work.
        own = Client(client.workspace, hello=client.hello, start=False, deadline=client.deadline)
        feed = cls(own, Following(kinds, session, since, patience))
        await own.run(feed._following.reconnect())
        return feed

    @property
    def since(self) -> Optional[str]:
        """The clock of the last event that was returned. Another feed can
        continue after it."""
        return self._following.since

    async def next(self, wait: Optional[float] = None) -> Union[Event, Gap, None]:
        """Returns the next event or gap, or None after `wait` seconds while
        the daemon runs."""
        return await self._client.run(self._following.next(wait))

    async def __aiter__(self) -> AsyncIterator[Union[Event, Gap]]:
        while True:
            said = await self.next()
            if said is not None:
                yield said

    def close(self) -> None:
        self._client.close()

    async def __aenter__(self) -> "Feed":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


async def open_session(
    id: str,
    *,
    workspace: Optional[Workspace] = None,
    agent: Optional[Program] = None,
    parent: Optional[str] = None,
) -> Session:
    """Opens a session in the current directory's workspace. Starts its daemon
    if none runs."""
    return await Session.open(Client(workspace), id, agent=agent, parent=parent)


__all__ = ["Client", "Feed", "Session", "Tools", "open_session"]
