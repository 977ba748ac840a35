"""Connects without blocking, and never to another user's daemon (LIFE-4,
SEC-8)."""

import errno
import os
import socket
import stat
import struct
import time
from pathlib import Path

from .errors import BadPlace, Deadline, NoDaemon
from .trust import Me

# The length in bytes of the longest path of a socket that the kernel accepts.
MAX_SOCKET_BYTES = 107
# The pause in seconds between two attempts while the queue of connections is
# full.
AGAIN = 0.01


def dial(path: Path, until: float) -> socket.socket:
    """Returns a connected, non-blocking socket. `until` is the deadline
    (`time.monotonic`)."""
    began = time.monotonic()
    while True:
        try:
            return try_dial(path)
        except BlockingIOError:
            if time.monotonic() >= until:
                after = (time.monotonic() - began) * 1000
                raise Deadline(f"the daemon did not take a connection within {after:.0f} ms") from None
            time.sleep(AGAIN)
        except (FileNotFoundError, ConnectionRefusedError):
            raise NoDaemon(f"no daemon answers at {path}") from None
        except OSError as error:
            raise BadPlace(f"{path}: {error.strerror}") from error


def try_dial(path: Path) -> socket.socket:
    """Tries to connect once. Raises BlockingIOError if the daemon's queue is
    full."""
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        stream.connect(os.fsencode(path))
        check_peer(stream, path)
    except BaseException:
        stream.close()
        raise
    return stream


def check_peer(stream: socket.socket, path: Path) -> None:
    """Raises BadPlace unless the daemon is this user's or root's (SEC-8)."""
    me = Me(os.geteuid())
    credentials = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, peer, _ = struct.unpack("3i", credentials)
    if not me.hears(peer):
        raise BadPlace(f"{path}: user {peer} listens there, not user {me.uid}")


def listens(path: Path) -> bool:
    """Returns whether a process listens on the socket."""
    try:
        # The file is checked first: a stat costs less, and most directories
        # have no socket.
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
        try_dial(path).close()
    except BadPlace:
        return False
    except OSError as error:
        # A daemon that is stopped or busy exists nevertheless.
        return error.errno == errno.EAGAIN
    return True


__all__ = ["MAX_SOCKET_BYTES", "dial", "listens"]
