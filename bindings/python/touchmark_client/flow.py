"""Sequences of steps, independent of how they are carried out. A flow is a
generator that yields steps and receives their results. The blocking client and
the asyncio client carry the steps out in different ways; their order is
written once.
"""

import os
import sys
import time
import warnings
from typing import Any, Callable, Generator, Optional, TypeVar, Union

from .call import Call
from .errors import ConnectionClosed, NotTracked, TouchmarkError, Unreachable
from .refusals import Denied, Incompatible, ShuttingDown

R = TypeVar("R")

# How long to wait, in seconds, after a failed connection before the next
# attempt.
TRY_AGAIN = 30.0

# Errors that mean that no daemon answers the session's requests.
NO_ANSWER = (Unreachable, ShuttingDown, Incompatible, Denied)


class Aside:
    """A step that runs a function which may wait for the disk, in another
    thread if necessary."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run


class Tool:
    """A step that runs a tool of the caller's. For asyncio it may return an
    awaitable."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run


class Pause:
    """A step that waits for a number of seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class NextEvent:
    """A step that waits for an event. Its result is None if there is none
    within `wait` seconds."""

    def __init__(self, wait: Optional[float]) -> None:
        self.wait = wait


class Dial:
    """A step that connects, and starts a daemon if that is allowed."""

    def __init__(self, until: float) -> None:
        self.until = until


class Over:
    """A step that sends a request on a given connection."""

    def __init__(self, connection: Any, call: Call[Any], within: float) -> None:
        self.connection = connection
        self.call = call
        self.within = within


Step = Union[Call[Any], Aside, Tool, Pause, NextEvent, Dial, Over]
Flow = Generator[Step, Any, R]


class Without(Exception):
    """There is no daemon. `notice` says so; it is None if that was already
    reported."""

    def __init__(self, notice: Optional[str]) -> None:
        super().__init__(notice)
        self.notice = notice


class Link:
    """Whether a session has a daemon, and whether a missing daemon was
    reported."""

    def __init__(self) -> None:
        self.lost: Optional[float] = None
        self.told = False

    def rests(self) -> bool:
        """Returns whether the last attempt failed too recently to try
        again."""
        return self.lost is not None and time.monotonic() - self.lost < TRY_AGAIN

    def found(self) -> None:
        self.lost, self.told = None, False

    def lose(self, error: TouchmarkError) -> Without:
        self.lost = time.monotonic()
        told, self.told = self.told, True
        return Without(None if told else str(error))


def ask(link: Link, call: "Call[R]", repeatable: bool = True) -> Flow[R]:
    """Sends a request to the daemon. Reconnects if the connection was lost.

    Raises `Without` if there is no daemon, and the daemon's errors. If the
    request is not repeatable and may have taken effect, raises
    `ConnectionClosed`.
    """
    if link.rests():
        raise Without(None)
    again = True
    while True:
        try:
            answer: R = yield call
        except NO_ANSWER as error:
            if isinstance(error, ConnectionClosed) and not repeatable:
                raise
            if again and isinstance(error, (ConnectionClosed, ShuttingDown)):
                again = False
                continue
            raise link.lose(error) from error
        link.found()
        return answer


def say(without: Without) -> None:
    """Warns, once, that files are not tracked."""
    if without.notice is not None:
        warnings.warn(
            f"{without.notice}; files are read and written without tracking", NotTracked, stacklevel=_outside()
        )


def _outside() -> int:
    """Returns how many stack frames up the first caller outside this package
    is."""
    here, level = os.path.dirname(__file__), 1
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == here:
        frame, level = frame.f_back, level + 1
    return level


__all__ = ["Aside", "Dial", "Flow", "Link", "NextEvent", "Over", "Pause", "Step", "Tool", "Without", "ask", "say"]
