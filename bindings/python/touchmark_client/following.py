"""A subscription that continues after the daemon was restarted. It reconnects
and requests the missed events."""

import enum
import time
from typing import Any, Optional, Sequence, Union

from . import calls
from .errors import ConnectionClosed, Lagged, NoDaemon, StartFailed
from .flow import Flow, NextEvent, Pause
from .refusals import ShuttingDown, UnknownClock
from .shapes import Event

# The pause between two attempts to connect to a daemon, in seconds.
LOOK_AGAIN = 0.05


class Gap(enum.Enum):
    """What a feed returns between events."""

    # The feed has reconnected to a daemon, and no event was missed.
    RECONNECTED = "reconnected"
    # The feed has reconnected to a daemon, and events may be missing (DUR-2).
    # Query the state of files again.
    MISSED = "missed"


class Following:
    """The flows of one feed."""

    def __init__(
        self, kinds: Optional[Sequence[str]], session: Optional[str], since: Optional[str], patience: float
    ) -> None:
        self.kinds = kinds
        self.session = session
        # The clock of the last event that was returned. Another feed can
        # continue after it.
        self.since = since
        self.patience = patience
        self.subscribed = False

    def next(self, wait: Optional[float]) -> Flow[Union[Event, Gap, None]]:
        """Returns the next event or gap, or None after `wait` seconds while
        the daemon runs. If the daemon exits, waits for another one."""
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
        """Subscribes after the last event that was returned. Returns True if
        the daemon no longer has the events since then."""
        missed = False
        if self.since is None:
            # This clock lets the feed continue if the daemon exits before the
            # first event.
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
