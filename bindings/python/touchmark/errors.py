"""What can go wrong between a caller and the daemon.

One class for each error that a daemon answers (`touchmark.Stale`,
`touchmark.Busy`; in `refusals`, generated from the schema): `except Stale` is
what an agent's loop has to say. A code that this version does not know
comes as `Refused` itself. What keeps a daemon from being asked at all is an
`Unreachable`.
"""

from typing import Any, Dict, Optional


class TouchmarkError(Exception):
    """Any of them. `code` is stable, `hint` says what to do."""

    code = "error"
    hint = ""


class Refused(TouchmarkError):
    """The daemon answered with an error.

    `number` is JSON-RPC's, `data` holds the fields of the error's code
    (docs/protocol.md), `code` and `hint` among them.
    """

    def __init__(self, message: str, number: int = 0, data: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(message)
        self.message = message
        self.number = number
        self.data: Dict[str, Any] = data or {}
        self.code = str(self.data.get("code", "unknown"))
        self.hint = str(self.data.get("hint", ""))


class Unreachable(TouchmarkError):
    """The daemon could not be asked, or did not answer."""


class NoDaemon(Unreachable):
    """Nothing listens on the socket."""

    code = "noDaemon"
    hint = "start one with `touchmark start`"


class StartFailed(Unreachable):
    """A daemon was started and did not come up."""

    code = "startFailed"
    hint = "run `touchmark daemon` in the foreground to see why"


class Deadline(Unreachable):
    """No answer in time (LIFE-4). The request carried the same deadline, so
    that a daemon that wakes up later does not act on it (ATTR-9)."""

    code = "deadline"
    hint = "the daemon is stopped or very busy: look at `touchmark status`, or give it more time"


class ConnectionClosed(Unreachable):
    """The daemon closed the connection: what was asked on it may have taken
    effect. The next call connects again."""

    code = "connectionClosed"
    hint = "connect again; a new daemon is started on demand"


class Lagged(Unreachable):
    """More events are waiting than a client keeps: nobody read them."""

    code = "lagged"
    hint = "read events as they come, and subscribe again with `since`"


class BadAnswer(Unreachable):
    """What came over the socket is not an answer."""

    code = "protocol"
    hint = "update the older of client and daemon"


class BadPlace(Unreachable):
    """The workspace or a place of touchmark's files cannot be used or
    trusted (SEC-1)."""

    code = "place"
    hint = "name another workspace or socket"


class NotTracked(UserWarning):
    """There is no daemon: files are read and written without tracking."""


__all__ = [
    "BadAnswer",
    "BadPlace",
    "ConnectionClosed",
    "Deadline",
    "Lagged",
    "NoDaemon",
    "NotTracked",
    "Refused",
    "StartFailed",
    "TouchmarkError",
    "Unreachable",
]
