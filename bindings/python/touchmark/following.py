"""A subscription that outlives its daemon: it connects again and asks for
what it missed."""

import enum
import time
from typing import Any, Optional, Sequence, Union

from . import calls
from .errors import ConnectionClosed, Lagged, NoDaemon, StartFailed
from .flow import Flow, NextEvent, Pause
from .refusals import ShuttingDown, UnknownClock
from .shapes import Event

# How long to wait between two looks for a daemon, in seconds.
LOOK_AGAIN = 0.05


class Gap(enum.Enum):
    """What a feed says between events."""

    # The daemon went away and another answers. Nothing was missed.
    RECONNECTED = "reconnected"
    # The same, but what happened in between is not known (DUR-2): what was
    # believed about files has to be asked again.
    MISSED = "missed"


class Following:
    """The flows of one feed."""

    def __init__(
        self, kinds: Optional[Sequence[str]], session: Optional[str], since: Optional[str], patience: float
    ) -> None:
        self.kinds = kinds
        self.session = session
        # The clock of the last event handed out: where another feed would go on.
        self.since = since
        self.patience = patience
        self.subscribed = False

    def next(self, wait: Optional[float]) -> Flow[Union[Event, Gap, None]]:
        """The next thing to say, or None after `wait` seconds of a living
        daemon. When it goes away, waits for another."""
        if not self.subscribed:
            return (yield from self.reconnect())
        try:
            event: Optional[Event] = yield NextEvent(wait)
        except (ConnectionClosed, Lagged):
            self.subscribed = False
            return (yield from self.reconnect())
        if event is not None:
            self.since = event["clock"]
        return event

    def reconnect(self) -> Flow[Gap]:
        until = time.monotonic() + self.patience
        while True:
            try:
                missed = yield from self.subscribe()
                return Gap.MISSED if missed else Gap.RECONNECTED
            except (ConnectionClosed, Lagged, NoDaemon, StartFailed, ShuttingDown):
                if time.monotonic() >= until:
                    raise
            yield Pause(min(LOOK_AGAIN, self.patience))

    def subscribe(self) -> Flow[bool]:
        """Subscribes from where the feed stopped; True if the daemon does not
        know that place any more."""
        missed = False
        if self.since is None:
            # So that a daemon that dies before the first event can be
            # followed as well.
            status = yield calls.status()
            self.since = str(status["clock"])
        try:
            yield self._call(self.since)
        except UnknownClock:
            missed = True
            status = yield calls.status()
            self.since = str(status["clock"])
            yield self._call(self.since)
        self.subscribed = True
        return missed

    def _call(self, since: Optional[str]) -> Any:
        return calls.subscribe(kinds=self.kinds, session=self.session, since=since)


__all__ = ["Gap"]
