"""What has to be done in order, without saying how: generators that yield
steps and are sent what came of them. The blocking client carries the steps
out one way, the asyncio client another; the order is written once.
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

# How long no daemon is looked for after there was none, in seconds.
TRY_AGAIN = 30.0

# What is no more the daemon's answer to the question than silence.
NO_ANSWER = (Unreachable, ShuttingDown, Incompatible, Denied)


class Aside:
    """A function that may wait for the disk: done where that holds nobody up."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run


class Tool:
    """A tool of the caller's; may give an awaitable, where the client awaits."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run


class Pause:
    """Wait so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class NextEvent:
    """Wait for an event; None if none comes in so many seconds."""

    def __init__(self, wait: Optional[float]) -> None:
        self.wait = wait


class Dial:
    """Make a connection, starting a daemon where that is wanted."""

    def __init__(self, until: float) -> None:
        self.until = until


class Over:
    """Ask over that very connection."""

    def __init__(self, connection: Any, call: Call[Any], within: float) -> None:
        self.connection = connection
        self.call = call
        self.within = within


Step = Union[Call[Any], Aside, Tool, Pause, NextEvent, Dial, Over]
Flow = Generator[Step, Any, R]


class Without(Exception):
    """There is no daemon to ask. `notice` is what to say of it, once."""

    def __init__(self, notice: Optional[str]) -> None:
        super().__init__(notice)
        self.notice = notice


class Link:
    """Whether one session has a daemon, and whether it was said that not."""

    def __init__(self) -> None:
        self.lost: Optional[float] = None
        self.told = False

    def rests(self) -> bool:
        """A daemon that was not there is not looked for at every call."""
        return self.lost is not None and time.monotonic() - self.lost < TRY_AGAIN

    def found(self) -> None:
        self.lost, self.told = None, False

    def lose(self, error: TouchmarkError) -> Without:
        self.lost = time.monotonic()
        told, self.told = self.told, True
        return Without(None if told else str(error))


def ask(link: Link, call: "Call[R]", repeatable: bool = True) -> Flow[R]:
    """Asks the daemon, on a new connection if the old one is lost.

    Raises `Without` where there is none, and what the daemon refuses with. A
    call that is not repeatable and may have taken effect raises
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
    """Says, once, that files are not tracked."""
    if without.notice is not None:
        warnings.warn(
            f"{without.notice}; files are read and written without tracking", NotTracked, stacklevel=_outside()
        )


def _outside() -> int:
    """How many calls up the caller of this package is."""
    here, level = os.path.dirname(__file__), 1
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == here:
        frame, level = frame.f_back, level + 1
    return level


__all__ = ["Aside", "Dial", "Flow", "Link", "NextEvent", "Over", "Pause", "Step", "Tool", "Without", "ask", "say"]
