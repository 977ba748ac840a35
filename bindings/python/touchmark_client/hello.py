"""The client's identification, sent with `initialize`."""

import time
from functools import partial
from typing import Any, Optional, Tuple

from . import calls
from .call import Call
from .errors import ConnectionClosed, TouchmarkError
from .flow import Aside, Dial, Flow, Over
from .places import Workspace
from .protocol import PROTOCOL
from .refusals import Incompatible, ShuttingDown
from .shapes import Initialized, Role
from .start import wait_until_ended


class Hello:
    """The client's name and version, the session it works for, and its
    kind."""

    def __init__(
        self,
        name: str = "touchmark-python",
        version: str = "0.1.0",
        *,
        session: Optional[str] = None,
        role: Optional[Role] = None,
    ) -> None:
        self.name = name
        self.version = version
        self.session = session
        self.role = role

    def call(self) -> "Call[Initialized]":
        return calls.initialize(
            {"name": self.name, "version": self.version}, PROTOCOL, session=self.session, role=self.role
        )


def greet(hello: Hello, workspace: Workspace, within: float, may_replace: bool) -> Flow[Tuple[Any, Initialized]]:
    """Returns a connection on which `initialize` was answered. A daemon of an
    older protocol is shut down and replaced, if daemons may be started; its
    state is kept, open edits included."""
    again = True
    while True:
        connection = yield Dial(time.monotonic() + within)
        try:
            welcome = yield Over(connection, hello.call(), within)
            workspace.check_served(welcome["workspace"])
            return connection, welcome
        except (ConnectionClosed, ShuttingDown):
            # The daemon was shutting down.
            connection.close()
            if not again:
                raise
        except Incompatible as error:
            theirs = error.data.get("server")
            if not (again and may_replace and isinstance(theirs, int) and theirs < PROTOCOL):
                connection.close()
                raise
            try:
                yield Over(connection, calls.shutdown(), within)
            except TouchmarkError:
                # The daemon may exit before it answers.
                pass
            connection.close()
            yield Aside(partial(wait_until_ended, workspace))
        except BaseException:
            connection.close()
            raise
        again = False


__all__ = ["Hello"]
