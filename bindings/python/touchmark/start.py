"""Starting a daemon where none runs."""

import os
import socket
import subprocess
import threading
import time
from typing import IO, Iterator, Mapping, Optional

from .dial import dial
from .errors import Deadline, NoDaemon, StartFailed
from .places import Workspace

BINARY_VARIABLE = "TOUCHMARK_BIN"
BINARY = "touchmark"
# How long a daemon may take to come up, and to let go of its socket, in seconds.
START_DEADLINE = 10.0
END_DEADLINE = 5.0
# How long another starter's daemon may take once ours has given way to it.
WINNER_DEADLINE = 10.0
# What a daemon ends with when another holds the lock (SEC-1).
ANOTHER_RUNS = 1


class Start:
    """How to start a daemon: the program, how long it may take, and its
    environment (this process's unless given)."""

    def __init__(
        self,
        binary: Optional[str] = None,
        deadline: float = START_DEADLINE,
        environ: Optional[Mapping[str, str]] = None,
    ) -> None:
        self.binary = binary or os.environ.get(BINARY_VARIABLE) or BINARY
        self.deadline = deadline
        self.environ = environ


def reach(workspace: Workspace, start: Optional[Start], until: float) -> socket.socket:
    """A connection to the workspace's daemon, which is started where none
    runs and `start` says how. Of two starters at the same moment one daemon
    stays, and both connect to it."""
    workspace.check()
    try:
        return dial_any(workspace, until)
    except NoDaemon:
        if start is None:
            raise
    with said_file() as said:
        child = spawn(workspace, start, said)
        try:
            return wait_for(workspace, child, said, time.monotonic() + start.deadline)
        finally:
            leave(child)


def dial_any(workspace: Workspace, until: float) -> socket.socket:
    """A connection to the workspace's daemon, wherever it was started."""
    for path in workspace.sockets():
        try:
            return dial(path, until)
        except NoDaemon:
            # Left by a daemon that was killed.
            pass
    raise NoDaemon(f"no daemon answers at {workspace.socket}")


def spawn(workspace: Workspace, start: Start, said: IO[bytes]) -> "subprocess.Popen[bytes]":
    command = [start.binary, "daemon", "--on-demand", "--workspace", os.fspath(workspace.root)]
    try:
        # No process group of its own: a group's leader could not become the
        # session leader that the daemon makes itself (LIFE-1).
        return subprocess.Popen(
            command,
            cwd="/",
            env=start.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
    except OSError as error:
        raise StartFailed(
            f"the daemon did not start: {start.binary}: {error.strerror} (set {BINARY_VARIABLE} to the binary)"
        ) from error


def wait_for(workspace: Workspace, child: "subprocess.Popen[bytes]", said: IO[bytes], until: float) -> socket.socket:
    ended = False
    for _ in pauses():
        try:
            return dial_any(workspace, until)
        except NoDaemon:
            pass
        if not ended and child.poll() is not None:
            ended = True
            if child.returncode != ANOTHER_RUNS:
                raise failed(child, said)
            # Ours gave way to another starter's, which may not listen yet.
            until = min(until, time.monotonic() + WINNER_DEADLINE)
        if time.monotonic() >= until:
            break
    raise failed(child, said)


def failed(child: "subprocess.Popen[bytes]", said: IO[bytes]) -> StartFailed:
    said.seek(0)
    lines = [line for line in said.read(16 * 1024).decode("utf-8", "replace").splitlines() if line.strip()]
    how = "it does not answer" if child.returncode is None else f"exit status: {child.returncode}"
    words = "; ".join(lines[-3:])
    return StartFailed(f"the daemon did not start: {words} ({how})" if words else f"the daemon did not start: {how}")


def said_file() -> IO[bytes]:
    """What a daemon says before it has a log: in memory, since a pipe would
    break when this process ends."""
    return open(os.memfd_create("touchmark-start", os.MFD_CLOEXEC), "w+b", buffering=0)


def leave(child: "subprocess.Popen[bytes]") -> None:
    """Lets the daemon go its own way; a thread collects its exit status, so
    that no zombie stays."""
    if child.returncode is None:
        threading.Thread(target=child.wait, name="touchmark-reap", daemon=True).start()


def wait_until_ended(workspace: Workspace, deadline: float = END_DEADLINE) -> None:
    """Waits until nothing listens."""
    until = time.monotonic() + deadline
    for _ in pauses():
        if not workspace.is_running():
            return
        if time.monotonic() >= until:
            raise Deadline(f"the daemon did not end within {deadline * 1000:.0f} ms")


def pauses() -> Iterator[None]:
    """Ever longer ones: a daemon is up within milliseconds, and one that is
    not should not be looked at all the time."""
    pause = 0.001
    while True:
        yield
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


__all__ = ["Start"]
