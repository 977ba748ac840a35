"""Tracks which of an agent's file copies are out of date, and who changed each
file.

    import touchmark_client

    session = touchmark_client.open_session("fix-42")
    text = session.read("src/parser.py")
    for change in session.changed():
        print(change["path"], "was changed by", change["changedBy"])
    with session.edit("src/parser.py") as f:  # refused if the copy is stale
        f.replace("old", "new")

`touchmark_client.aio` has the same functions for asyncio.
"""

from . import calls, shapes
from .blocking import Client
from .call import Call
from .draft import Draft
from .errors import (
    BadAnswer,
    BadPlace,
    ConnectionClosed,
    Deadline,
    Lagged,
    NoDaemon,
    NotTracked,
    Refused,
    StartFailed,
    TouchmarkError,
    Unreachable,
)
from .files import hash_of
from .following import Gap
from .hello import Hello
from .names import exact
from .places import Workspace
from .refusals import *  # noqa: F403 # one exception for each code
from .refusals import __all__ as _refusals
from .session import Feed, Session, Tools, open_session
from .start import Start
from .tooling import Answer, Output, Rules

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "BadAnswer",
    "BadPlace",
    "Call",
    "Client",
    "ConnectionClosed",
    "Deadline",
    "Draft",
    "Feed",
    "Gap",
    "Hello",
    "Lagged",
    "NoDaemon",
    "NotTracked",
    "Output",
    "Refused",
    "Rules",
    "Session",
    "Start",
    "StartFailed",
    "Tools",
    "TouchmarkError",
    "Unreachable",
    "Workspace",
    "calls",
    "exact",
    "hash_of",
    "open_session",
    "shapes",
]
__all__ += _refusals
