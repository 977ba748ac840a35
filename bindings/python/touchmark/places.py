"""Which workspace, and where its daemon listens."""

import hashlib
import os
import stat
from pathlib import Path
from typing import List, Mapping, Optional, Union

from .dial import MAX_SOCKET_BYTES, listens
from .errors import BadPlace
from .trust import takes

SOCKET_VARIABLE = "TOUCHMARK_SOCKET"
# What marks a workspace without a daemon.
MARKS = (".touchmark.toml", ".git")


class Workspace:
    """A workspace's directory, and the socket that a daemon of this environment
    would listen on: see `sockets`."""

    def __init__(
        self, root: Path, socket: Path, private: Optional[Path] = None, lock: Optional[Path] = None
    ) -> None:
        self.root = root
        self.socket = socket
        # What says where the daemon that runs listens.
        self.lock = lock
        # The directory of the socket, where that is touchmark's own to check.
        self.private = private

    @classmethod
    def at(
        cls,
        directory: Union[str, "os.PathLike[str]"] = ".",
        environ: Optional[Mapping[str, str]] = None,
    ) -> "Workspace":
        """The workspace in that very directory."""
        environ = os.environ if environ is None else environ
        root = Path(directory).resolve(strict=True)
        if not root.is_dir():
            raise NotADirectoryError(f"{root}: a workspace is a directory")
        lock = lock_of(root, environ)
        outright = environ.get(SOCKET_VARIABLE)
        if outright:
            return cls(root, Path(outright), lock=lock)
        runtime = runtime_directory(environ)
        return cls(root, runtime / f"{key(root)}.sock", runtime, lock)

    def sockets(self) -> List[Path]:
        """Where its daemon may listen, in the order to look. One that was
        started with another runtime directory listens elsewhere than one of
        this environment would; its lock says where (SEC-1)."""
        held = None if self.lock is None else held_socket(self.lock)
        if held is None or held == self.socket:
            return [self.socket]
        # What is named outright comes first.
        return [self.socket, held] if self.private is None else [held, self.socket]

    def is_running(self) -> bool:
        """Whether its daemon runs, or something else listens there."""
        return any(map(listens, self.sockets()))

    @classmethod
    def find(
        cls,
        directory: Union[str, "os.PathLike[str]"] = ".",
        environ: Optional[Mapping[str, str]] = None,
    ) -> "Workspace":
        """The innermost, going up from `directory`, that has a running daemon,
        a `.touchmark.toml` or a `.git`; else `directory` itself. Marks that
        others could have put there count as none (SEC-6)."""
        environ = os.environ if environ is None else environ
        start = Path(directory).resolve(strict=True)
        runtime = runtime_directory(environ)
        for one in (start, *start.parents):
            if any(takes(one / mark, environ, trusted_file(environ)) for mark in MARKS):
                return cls.at(one, environ)
            # A socket named outright is the same for every directory: it marks none.
            if cls(one, runtime / f"{key(one)}.sock", runtime, lock_of(one, environ)).is_running():
                return cls.at(one, environ)
        return cls.at(start, environ)

    def check(self) -> None:
        """Refuses places that others could have made (SEC-1)."""
        length = len(os.fsencode(self.socket))
        if length > MAX_SOCKET_BYTES:
            raise BadPlace(
                f"{self.socket}: the path of a socket may have {MAX_SOCKET_BYTES} bytes,"
                f" this one has {length}: set {SOCKET_VARIABLE} to a shorter one"
            )
        if self.private is None:
            return
        try:
            # Not followed: a link could lead to a place of somebody's choosing.
            found = os.lstat(self.private)
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(found.st_mode):
            raise BadPlace(f"{self.private}: not a directory")
        if found.st_uid != os.geteuid():
            raise BadPlace(f"{self.private}: belongs to user {found.st_uid}")
        if found.st_mode & 0o077:
            raise BadPlace(f"{self.private}: open to others (mode {found.st_mode & 0o777:03o})")

    def check_served(self, served: str) -> None:
        """Refuses a daemon that serves another workspace: `TOUCHMARK_SOCKET`
        is the same for every directory (SEC-8)."""
        meant = os.fsencode(self.root).decode(errors="replace")
        if served != meant:
            raise BadPlace(f"{self.socket}: its daemon serves {served}, not {meant}: unset {SOCKET_VARIABLE}")

    def __repr__(self) -> str:
        return f"Workspace({os.fspath(self.root)!r})"


def key(root: Path) -> str:
    """A workspace's name among all of this user's."""
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def runtime_directory(environ: Mapping[str, str]) -> Path:
    """The directory of this user's sockets."""
    runtime = _absolute(environ.get("XDG_RUNTIME_DIR"))
    if runtime is not None:
        return runtime / "touchmark"
    cache = _absolute(environ.get("XDG_CACHE_HOME")) or _home(environ) / ".cache"
    return cache / "touchmark" / "run"


def lock_of(root: Path, environ: Mapping[str, str]) -> Path:
    """The lock of a workspace's daemon, beside its state."""
    state = _absolute(environ.get("XDG_STATE_HOME")) or _home(environ) / ".local" / "state"
    return state / "touchmark" / f"{key(root)}.lock"


def trusted_file(environ: Mapping[str, str]) -> Path:
    """The list of directories that the user trusts though they are somebody
    else's."""
    config = _absolute(environ.get("XDG_CONFIG_HOME")) or _home(environ) / ".config"
    return config / "touchmark" / "trusted"


def held_socket(lock: Path) -> Optional[Path]:
    """The socket that a lock names, if it is there and this user's."""
    me = os.geteuid()
    try:
        if os.lstat(lock).st_uid != me:
            return None
        # The daemon's number, its socket and the workspace, each with a line feed.
        lines = lock.read_bytes().split(b"\n", 2)
        if len(lines) < 3 or not lines[2].endswith(b"\n") or not os.path.isabs(lines[1]):
            return None
        found = os.lstat(lines[1])
    except OSError:
        return None
    ours = stat.S_ISSOCK(found.st_mode) and found.st_uid == me
    return Path(os.fsdecode(lines[1])) if ours else None


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or os.path.expanduser("~"))


def _absolute(value: Optional[str]) -> Optional[Path]:
    # The XDG specification has relative paths ignored.
    return Path(value) if value and os.path.isabs(value) else None


__all__ = ["Workspace"]
