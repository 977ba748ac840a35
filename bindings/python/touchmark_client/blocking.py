"""A connection for code without an event loop. Threads may share it: each call
has its own id, which assigns the answer to its caller."""

import os
import select
import socket
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, List, Mapping, Optional, TypeVar, Union

from .call import Call
from .errors import ConnectionClosed, Deadline, TouchmarkError
from .flow import Aside, Dial, Flow, NextEvent, Over, Pause, Step, Tool
from .hello import Hello, greet
from .methods import ClientMethods
from .places import Workspace
from .protocol import Conversation
from .shapes import Event, Initialized
from .start import Start, reach
from .work import every

R = TypeVar("R")


class Connection:
    """One socket, and a thread that reads it."""

    def __init__(self, stream: socket.socket, root: bytes) -> None:
        self._stream = stream
        self._talk = Conversation(root)
        # This lock is never held while waiting.
        self._lock = threading.Lock()
        self._event = threading.Condition(self._lock)
        # This lock is held while a request is sent, so that requests are sent
        # in order.
        self._sending = threading.Lock()
        threading.Thread(target=self._read, name="touchmark-read", daemon=True).start()

    @property
    def is_open(self) -> bool:
        return self._talk.ended is None

    def call(self, call: "Call[R]", within: float) -> R:
        until = time.monotonic() + within
        answer: "Future[R]" = Future()

        def done(result: Any, error: Optional[TouchmarkError]) -> None:
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result)

        number = self._send(call, within, until, done)
        try:
            return answer.result(max(0.0, until - time.monotonic()))
        except FutureTimeout:
            raise Deadline(f"the daemon did not answer {call.method} within {within * 1000:.0f} ms") from None
        finally:
            with self._lock:
                self._talk.give_up(number)

    def _send(self, call: "Call[Any]", within: float, until: float, done: Any) -> int:
        if not self._sending.acquire(timeout=max(0.0, until - time.monotonic())):
            raise Deadline(f"{call.method} could not be sent within {within * 1000:.0f} ms")
        try:
            with self._lock:
                number, rest = self._talk.ask(call, within, done)
            try:
                self._write(rest, until, call.method)
            except TouchmarkError as error:
                # A part of a message may have been sent, so nothing may follow
                # it.
                self.close(error)
                raise
            return number
        finally:
            self._sending.release()

    def _write(self, rest: bytes, until: float, method: str) -> None:
        view = memoryview(rest)
        while view:
            try:
                view = view[self._stream.send(view, socket.MSG_NOSIGNAL):]
            except BlockingIOError:
                left = until - time.monotonic()
                if left <= 0:
                    raise Deadline(f"the daemon did not take {method} in time") from None
                ready = select.poll()
                ready.register(self._stream, select.POLLOUT)
                ready.poll(left * 1000)
            except OSError as error:
                raise ConnectionClosed(f"the daemon closed the connection: {error.strerror}") from None

    def _read(self) -> None:
        reason: Optional[BaseException] = None
        ready = select.poll()
        ready.register(self._stream, select.POLLIN)
        try:
            while True:
                ready.poll()
                try:
                    data = self._stream.recv(1 << 16)
                except BlockingIOError:
                    continue
                if not data:
                    break
                with self._lock:
                    if self._talk.receive(data):
                        self._event.notify_all()
        except (OSError, TouchmarkError) as error:
            reason = error
        with self._lock:
            self._talk.end(reason)
            self._event.notify_all()
        self._stream.close()

    def next_event(self, wait: Optional[float]) -> Optional[Event]:
        until = None if wait is None else time.monotonic() + wait
        with self._lock:
            while True:
                event = self._talk.event()
                if event is not None:
                    return event
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return None
                self._event.wait(left)

    def close(self, reason: Optional[TouchmarkError] = None) -> None:
        with self._lock:
            self._talk.end(reason or ConnectionClosed("this client closed the connection"))
            self._event.notify_all()
        try:
            # This wakes the reading thread, which closes the socket.
            self._stream.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Client(ClientMethods):
    """A client of a workspace's daemon. It connects at the first call, starts
    a daemon if none runs, and reconnects if the connection was lost.

    `deadline`: the default time to wait for an answer, in seconds. `start`:
    whether to start a daemon if none runs, or how to start it.
    """

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
        self._connecting = threading.Lock()

    def connect(self) -> "Client":
        """Connects now, unless already connected."""
        self._connected(self.deadline)
        return self

    def _connected(self, within: float) -> Connection:
        with self._connecting:
            if self._connection is None or not self._connection.is_open:
                flow = greet(self.hello, self.workspace, within, self.start is not None)
                self._connection, self.server = self.run(flow)
            return self._connection

    def call(self, call: "Call[R]", *, within: Optional[float] = None) -> R:
        """Sends a request and waits for its answer, at most `within` seconds
        (default: the client's deadline)."""
        seconds = self.deadline if within is None else within
        return self._connected(seconds).call(call, seconds)

    def request(self, method: str, params: Optional[Mapping[str, Any]] = None, *, within: Optional[float] = None) -> Any:
        """Sends a request that has no function in `calls`, by its method's
        name."""
        return self.call(Call[Any](method, params or {}), within=within)

    def rows(self, call: "Call[Any]", member: str) -> List[Any]:
        """Returns all rows of a list: `client.rows(calls.session_list(),
        "sessions")`."""
        return self.run(every(call, member))

    def next_event(self, wait: Optional[float] = None) -> Optional[Event]:
        """Returns the next event of this connection's subscriptions, or None
        after `wait` seconds. Unlike `Feed`, it does not reconnect."""
        connection = self._connection
        if connection is None:
            raise ConnectionClosed("nothing was subscribed to")
        return connection.next_event(wait)

    def run(self, flow: "Flow[R]") -> R:
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
                answer = self._do(step)
            except Exception as error:
                failure = error

    def _do(self, step: Step) -> Any:
        if isinstance(step, Call):
            return self.call(step)
        if isinstance(step, (Aside, Tool)):
            return step.run()
        if isinstance(step, NextEvent):
            return self.next_event(step.wait)
        if isinstance(step, Dial):
            root = os.fsencode(self.workspace.root)
            return Connection(reach(self.workspace, self.start, step.until), root)
        if isinstance(step, Over):
            return step.connection.call(step.call, step.within)
        assert isinstance(step, Pause)
        return time.sleep(step.seconds)

    def close(self) -> None:
        """Closes the connection. Edits that are bound to it end."""
        with self._connecting:
            if self._connection is not None:
                self._connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


__all__ = ["Client"]
