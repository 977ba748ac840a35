"""Which workspace, and where its daemon listens."""

import hashlib
import os
import stat
from pathlib import Path
from typing import Mapping, Optional, Union

from .dial import MAX_SOCKET_BYTES, listens
from .errors import BadPlace

SOCKET_VARIABLE = "TOUCHMARK_SOCKET"
# What marks a workspace without a daemon.
MARKS = (".touchmark.toml", ".git")


class Workspace:
    """A workspace's directory and its daemon's socket."""

    def __init__(self, root: Path, socket: Path, private: Optional[Path] = None) -> None:
        self.root = root
        self.socket = socket
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
        outright = environ.get(SOCKET_VARIABLE)
        if outright:
            return cls(root, Path(outright))
        runtime = runtime_directory(environ)
        return cls(root, runtime / f"{key(root)}.sock", runtime)

    @classmethod
    def find(
        cls,
        directory: Union[str, "os.PathLike[str]"] = ".",
        environ: Optional[Mapping[str, str]] = None,
    ) -> "Workspace":
        """The innermost, going up from `directory`, that has a running daemon,
        a `.touchmark.toml` or a `.git`; else `directory` itself."""
        environ = os.environ if environ is None else environ
        start = Path(directory).resolve(strict=True)
        runtime = runtime_directory(environ)
        for one in (start, *start.parents):
            if any(os.path.lexists(one / mark) for mark in MARKS):
                return cls.at(one, environ)
            if listens(runtime / f"{key(one)}.sock"):
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
    cache = _absolute(environ.get("XDG_CACHE_HOME"))
    if cache is None:
        cache = Path(environ.get("HOME") or os.path.expanduser("~")) / ".cache"
    return cache / "touchmark" / "run"


def _absolute(value: Optional[str]) -> Optional[Path]:
    # The XDG specification has relative paths ignored.
    return Path(value) if value and os.path.isabs(value) else None


__all__ = ["Workspace"]
