"""A connection for asyncio: concurrent calls over one socket."""

import asyncio
import inspect
import os
import socket
import time
from typing import Any, List, Mapping, Optional, Tuple, TypeVar, Union

from .aio_methods import ClientMethods
from .call import Call
from .errors import ConnectionClosed, Deadline, TouchmarkError
from .flow import Aside, Dial, Flow, NextEvent, Over, Pause, Step, Tool
from .hello import Hello, greet
from .places import Workspace
from .protocol import Conversation
from .shapes import Event, Initialized
from .start import Start, reach
from .work import every

R = TypeVar("R")


class Connection:
    """One socket, and a task that reads it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, root: bytes) -> None:
        self._writer = writer
        self._talk = Conversation(root)
        self._came = asyncio.Event()
        self._reading = asyncio.ensure_future(self._read(reader))

    @classmethod
    async def over(cls, stream: socket.socket, root: bytes) -> "Connection":
        reader, writer = await asyncio.open_unix_connection(sock=stream)
        return cls(reader, writer, root)

    @property
    def is_open(self) -> bool:
        return self._talk.ended is None

    async def call(self, call: "Call[R]", within: float) -> R:
        answer: "asyncio.Future[R]" = asyncio.get_running_loop().create_future()

        def done(result: Any, error: Optional[TouchmarkError]) -> None:
            if answer.done():
                # The caller was cancelled.
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result)

        number, sent = self._talk.ask(call, within, done)
        try:
            return await asyncio.wait_for(self._exchange(sent, answer), within)
        except asyncio.TimeoutError:
            raise Deadline(f"the daemon did not answer {call.method} within {within * 1000:.0f} ms") from None
        finally:
            self._talk.give_up(number)
            if answer.done() and not answer.cancelled():
                # Reading the exception keeps asyncio from reporting it as never
                # retrieved.
                answer.exception()

    async def _exchange(self, sent: bytes, answer: "asyncio.Future[R]") -> R:
        # The whole message is queued at once, so a cancelled caller leaves no
        # partial message.
        self._writer.write(sent)
        try:
            await self._writer.drain()
        except OSError:
            # The reading task ends with the reason.
            pass
        return await answer

    async def _read(self, reader: asyncio.StreamReader) -> None:
        reason: Optional[BaseException] = None
        try:
            while True:
                data = await reader.read(1 << 16)
                if not data:
                    break
                if self._talk.receive(data):
                    self._came.set()
        except (OSError, TouchmarkError) as error:
            reason = error
        finally:
            self._talk.end(reason)
            self._came.set()
            self._writer.close()

    async def next_event(self, wait: Optional[float]) -> Optional[Event]:
        until = None if wait is None else time.monotonic() + wait
        while True:
            self._came.clear()
            event = self._talk.event()
            if event is not None:
                return event
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return None
            try:
                await asyncio.wait_for(self._came.wait(), left)
            except asyncio.TimeoutError:
                return None

    def close(self) -> None:
        self._talk.end(ConnectionClosed("this client closed the connection"))
        self._came.set()
        self._reading.cancel()
        self._writer.close()


class Client(ClientMethods):
    """A client for asyncio. It is like `touchmark_client.Client`, with `await`."""

    def __init__(
        self,
        workspace: Optional[Workspace] = None,
        *,
        hello: Optional[Hello] = None,
        start: Union[bool, Start] = True,
        deadline: float = 10.0,
    ) -> None:
        self.workspace = Workspace.find() if workspace is None else workspace
        self.hello = Hello() if hello is None else hello
        self.start = start if isinstance(start, Start) else Start() if start else None
        self.deadline = deadline
        # What the daemon answered to `initialize`; None before the first
        # connection.
        self.server: Optional[Initialized] = None
        self._connection: Optional[Connection] = None
        self._connecting: Optional[asyncio.Lock] = None

    async def connect(self) -> "Client":
        """Connects now, unless already connected."""
        await self._connected(self.deadline)
        return self

    async def _connected(self, within: float) -> Connection:
        if self._connection is not None and self._connection.is_open:
            return self._connection
        if self._connecting is None:
            # The lock belongs to the running event loop, which may not exist
            # yet in `__init__`.
            self._connecting = asyncio.Lock()
        async with self._connecting:
            connection = self._connection
            if connection is None or not connection.is_open:
                flow = greet(self.hello, self.workspace, within, self.start is not None)
                made: Tuple[Connection, Initialized] = await self.run(flow)
                connection, self.server = made
                self._connection = connection
            return connection

    async def call(self, call: "Call[R]", *, within: Optional[float] = None) -> R:
        """Sends a request and waits for its answer, at most `within` seconds
        (default: the client's deadline)."""
        seconds = self.deadline if within is None else within
        return await (await self._connected(seconds)).call(call, seconds)

    async def request(
        self, method: str, params: Optional[Mapping[str, Any]] = None, *, within: Optional[float] = None
    ) -> Any:
        """Sends a request that has no function in `calls`, by its method's
        name."""
        return await self.call(Call[Any](method, params or {}), within=within)

    async def rows(self, call: "Call[Any]", member: str) -> List[Any]:
        """Returns all rows of a list: `await client.rows(calls.session_list(),
        "sessions")`."""
        return await self.run(every(call, member))

    async def next_event(self, wait: Optional[float] = None) -> Optional[Event]:
        """Returns the next event of this connection's subscriptions, or None
        after `wait` seconds. Unlike `Feed`, it does not reconnect."""
        connection = self._connection
        if connection is None:
            raise ConnectionClosed("nothing was subscribed to")
        return await connection.next_event(wait)

    async def run(self, flow: "Flow[R]") -> R:
        """Carries out the steps of a flow (see `flow`)."""
        answer: Any = None
        failure: Optional[Exception] = None
        while True:
            try:
                step = flow.send(answer) if failure is None else flow.throw(failure)
            except StopIteration as end:
                result: R = end.value
                return result
            answer, failure = None, None
            try:
                answer = await self._do(step)
            except Exception as error:
                failure = error

    async def _do(self, step: Step) -> Any:
        if isinstance(step, Call):
            return await self.call(step)
        if isinstance(step, Aside):
            return await asyncio.get_running_loop().run_in_executor(None, step.run)
        if isinstance(step, Tool):
            made = step.run()
            return await made if inspect.isawaitable(made) else made
        if isinstance(step, NextEvent):
            return await self.next_event(step.wait)
        if isinstance(step, Dial):
            until = step.until
            stream = await asyncio.get_running_loop().run_in_executor(
                None, lambda: reach(self.workspace, self.start, until)
            )
            return await Connection.over(stream, os.fsencode(self.workspace.root))
        if isinstance(step, Over):
            return await step.connection.call(step.call, step.within)
        assert isinstance(step, Pause)
        return await asyncio.sleep(step.seconds)

    def close(self) -> None:
        """Closes the connection. Edits that are bound to it end."""
        if self._connection is not None:
            self._connection.close()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


__all__ = ["Client"]
