"""Starts a daemon if none runs."""

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
# How long a daemon may take to answer, and to close its socket, in seconds.
START_DEADLINE = 10.0
END_DEADLINE = 5.0
# How long the daemon of another starter may take, after this process's daemon
# has found the lock taken, in seconds.
WINNER_DEADLINE = 10.0
# The exit code of a daemon that finds the lock taken by another daemon (SEC-1).
ANOTHER_RUNS = 1


class Start:
    """How to start a daemon: the program, how long it may take in seconds, and
    its environment (default: this process's)."""

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
    """Returns a connection to the workspace's daemon. If none runs and `start`
    is given, starts one. If two processes start one at the same moment, one
    daemon runs, and both processes connect to it."""
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
    """Returns a connection to the workspace's daemon, wherever it was
    started."""
    for path in workspace.sockets():
        try:
            return dial(path, until)
        except NoDaemon:
            # This socket may be left from a daemon that was killed.
            pass
    raise NoDaemon(f"no daemon answers at {workspace.socket}")


def spawn(workspace: Workspace, start: Start, said: IO[bytes]) -> "subprocess.Popen[bytes]":
    command = [start.binary, "daemon", "--on-demand", "--workspace", os.fspath(workspace.root)]
    try:
        # The child does not get its own process group: the leader of a group
        # could not become the leader of a session, which the daemon does
        # (LIFE-1).
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
            # The started daemon found the lock taken by another one, which may
            # not listen yet.
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
    """Returns an unnamed file for what a daemon prints before it opens its
    log. It is in memory; a pipe would break when this process exits."""
    return open(os.memfd_create("touchmark-start", os.MFD_CLOEXEC), "w+b", buffering=0)


def leave(child: "subprocess.Popen[bytes]") -> None:
    """Detaches from the daemon. A thread collects its exit status, so that no
    zombie remains."""
    if child.returncode is None:
        threading.Thread(target=child.wait, name="touchmark-reap", daemon=True).start()


def wait_until_ended(workspace: Workspace, deadline: float = END_DEADLINE) -> None:
    """Waits until no process listens. `deadline` is in seconds."""
    until = time.monotonic() + deadline
    for _ in pauses():
        if not workspace.is_running():
            return
        if time.monotonic() >= until:
            raise Deadline(f"the daemon did not end within {deadline * 1000:.0f} ms")


def pauses() -> Iterator[None]:
    """Pauses that double each time. A daemon usually answers within
    milliseconds; one that does not should not be polled too often."""
    pause = 0.001
    while True:
        yield
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


__all__ = ["Start"]
