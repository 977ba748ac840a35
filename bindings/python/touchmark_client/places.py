"""Finds the workspace of a directory, and the socket of its daemon."""

import hashlib
import os
import stat
from pathlib import Path
from typing import List, Mapping, Optional, Union

from .dial import MAX_SOCKET_BYTES, listens
from .errors import BadPlace
from .trust import takes

SOCKET_VARIABLE = "TOUCHMARK_SOCKET"
# The names that mark a workspace even if no daemon runs.
MARKS = (".touchmark.toml", ".git")


class Workspace:
    """A workspace's directory, and the socket that a daemon of this
    environment would listen on: see `sockets`."""

    def __init__(
        self, root: Path, socket: Path, private: Optional[Path] = None, lock: Optional[Path] = None
    ) -> None:
        self.root = root
        self.socket = socket
        # The lock file, which names the socket of the running daemon.
        self.lock = lock
        # The directory of the socket if it is touchmark's own, whose
        # permissions are checked; else None.
        self.private = private

    @classmethod
    def at(
        cls,
        directory: Union[str, "os.PathLike[str]"] = ".",
        environ: Optional[Mapping[str, str]] = None,
    ) -> "Workspace":
        """Returns the workspace whose root is this directory."""
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
        """Returns the sockets that the daemon may listen on, in the order to
        try them. A daemon that was started with another runtime directory
        listens elsewhere than this environment says; its lock file names the
        socket (SEC-1)."""
        held = None if self.lock is None else held_socket(self.lock)
        if held is None or held == self.socket:
            return [self.socket]
        # A socket that `TOUCHMARK_SOCKET` names is tried first.
        return [self.socket, held] if self.private is None else [held, self.socket]

    def is_running(self) -> bool:
        """Returns whether a process listens on one of the sockets."""
        return any(map(listens, self.sockets()))

    @classmethod
    def find(
        cls,
        directory: Union[str, "os.PathLike[str]"] = ".",
        environ: Optional[Mapping[str, str]] = None,
    ) -> "Workspace":
        """Returns the workspace of a directory: the innermost directory, going
        up from `directory`, that has a running daemon, a `.touchmark.toml` or
        a `.git`; else `directory` itself. Files that other users could have
        put there are ignored (SEC-6)."""
        environ = os.environ if environ is None else environ
        start = Path(directory).resolve(strict=True)
        runtime = runtime_directory(environ)
        for one in (start, *start.parents):
            if any(takes(one / mark, environ, trusted_file(environ)) for mark in MARKS):
                return cls.at(one, environ)
            # A socket that `TOUCHMARK_SOCKET` names is the same for every
            # directory, so it is not used here.
            if cls(one, runtime / f"{key(one)}.sock", runtime, lock_of(one, environ)).is_running():
                return cls.at(one, environ)
        return cls.at(start, environ)

    def check(self) -> None:
        """Raises BadPlace if other users could have created the socket
        (SEC-1)."""
        length = len(os.fsencode(self.socket))
        if length > MAX_SOCKET_BYTES:
            raise BadPlace(
                f"{self.socket}: the path of a socket may have {MAX_SOCKET_BYTES} bytes,"
                f" this one has {length}: set {SOCKET_VARIABLE} to a shorter one"
            )
        if self.private is None:
            return
        try:
            # A symlink is not followed, since another user could have chosen
            # its target.
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
        """Raises BadPlace if the daemon serves another workspace, since
        `TOUCHMARK_SOCKET` is the same for every directory (SEC-8)."""
        meant = os.fsencode(self.root).decode(errors="replace")
        if served != meant:
            raise BadPlace(f"{self.socket}: its daemon serves {served}, not {meant}: unset {SOCKET_VARIABLE}")

    def __repr__(self) -> str:
        return f"Workspace({os.fspath(self.root)!r})"


def key(root: Path) -> str:
    """Returns the workspace's key, which is unique among this user's
    workspaces."""
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def runtime_directory(environ: Mapping[str, str]) -> Path:
    """Returns the directory of this user's sockets."""
    runtime = _absolute(environ.get("XDG_RUNTIME_DIR"))
    if runtime is not None:
        return runtime / "touchmark"
    cache = _absolute(environ.get("XDG_CACHE_HOME")) or _home(environ) / ".cache"
    return cache / "touchmark" / "run"


def lock_of(root: Path, environ: Mapping[str, str]) -> Path:
    """Returns the lock file of a workspace's daemon, which is next to its
    state."""
    state = _absolute(environ.get("XDG_STATE_HOME")) or _home(environ) / ".local" / "state"
    return state / "touchmark" / f"{key(root)}.lock"


def trusted_file(environ: Mapping[str, str]) -> Path:
    """Returns the list of directories that the user trusts although they
    belong to other users."""
    config = _absolute(environ.get("XDG_CONFIG_HOME")) or _home(environ) / ".config"
    return config / "touchmark" / "trusted"


def held_socket(lock: Path) -> Optional[Path]:
    """Returns the socket that a lock file names, if it exists and is this
    user's."""
    me = os.geteuid()
    try:
        if os.lstat(lock).st_uid != me:
            return None
        # The file has the daemon's process id, its socket and the workspace,
        # each followed by a line feed.
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
    # The XDG specification says that relative paths are to be ignored.
    return Path(value) if value and os.path.isabs(value) else None


__all__ = ["Workspace"]
