"""The errors of the client, and those that the daemon returns.

There is one class for each error code of the daemon (`touchmark_client.Stale`,
`touchmark_client.Busy`; generated from the schema into `refusals`), so an agent's
loop can say `except Stale`. A code that this version does not know is raised
as `Refused` itself. `Unreachable` means that the daemon could not be asked.
"""

from typing import Any, Dict, Optional


class TouchmarkError(Exception):
    """The base class of all errors. `code` is stable, `hint` says what to
    do."""

    code = "error"
    hint = ""


class Refused(TouchmarkError):
    """An error that the daemon returned.

    `number` is JSON-RPC's code. `data` has the fields of the error
    (docs/protocol.md), including `code` and `hint`.
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
    """No daemon listens on the socket."""

    code = "noDaemon"
    hint = "start one with `touchmark start`"


class StartFailed(Unreachable):
    """A daemon was started and did not answer."""

    code = "startFailed"
    hint = "run `touchmark daemon` in the foreground to see why"


class Deadline(Unreachable):
    """The answer did not come in time (LIFE-4). The request had the same
    deadline, so a daemon that reads it later does not carry it out
    (ATTR-9)."""

    code = "deadline"
    hint = "the daemon is stopped or very busy: look at `touchmark status`, or give it more time"


class ConnectionClosed(Unreachable):
    """The daemon closed the connection. Pending requests may have taken
    effect. The next call connects again."""

    code = "connectionClosed"
    hint = "connect again; a new daemon is started on demand"


class Lagged(Unreachable):
    """The client stopped reading events, and its queue is full."""

    code = "lagged"
    hint = "read events as they come, and subscribe again with `since`"


class BadAnswer(Unreachable):
    """The bytes from the socket are not a valid answer."""

    code = "protocol"
    hint = "update the older of client and daemon"


class BadPlace(Unreachable):
    """The workspace, or a path of touchmark's own files, cannot be used or
    trusted (SEC-1)."""

    code = "place"
    hint = "name another workspace or socket"


class NotTracked(UserWarning):
    """The warning that no daemon can be reached, so files are read and written
    without tracking."""


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
