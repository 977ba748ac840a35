"""Who is taken at their word: whose files mark a workspace (SEC-6), and who
may answer as its daemon (SEC-8). The cases are in bindings/conformance/trust."""

import os
from pathlib import Path
from typing import Mapping, NamedTuple, Optional

OTHERS_WRITE = 0o002
# Who may write in the directory may remove only what is theirs.
STICKY = 0o1000
# The longest list of trusted directories that is read.
MOST_LIST = 1 << 20


class Owned(NamedTuple):
    """Owner and mode of a file, as `lstat` tells them."""

    uid: int
    mode: int = 0


class Me(NamedTuple):
    """Whose process this is; whom root works for, if `SUDO_UID` says so."""

    uid: int
    sudo: Optional[int] = None

    def trusts(self, uid: int) -> bool:
        return uid in (self.uid, 0) or (self.uid == 0 and self.sudo == uid)

    def takes(self, directory: Owned, file: Owned) -> bool:
        """Whether a file in a directory is taken over: both belong to who is
        trusted, and not everybody may put another in its place."""
        open_to_all = directory.mode & OTHERS_WRITE and not directory.mode & STICKY
        return self.trusts(file.uid) and self.trusts(directory.uid) and not open_to_all

    def hears(self, peer: int) -> bool:
        """Whether a process of `peer` may answer as this user's daemon."""
        return peer in (self.uid, 0)


def this_process(environ: Mapping[str, str]) -> Me:
    sudo = environ.get("SUDO_UID", "")
    return Me(os.geteuid(), int(sudo) if sudo.isascii() and sudo.isdigit() else None)


def takes(mark: Path, environ: Mapping[str, str], trusted: Path) -> bool:
    """Whether a mark is there and taken over. Its directory is canonical."""
    try:
        file, directory = os.lstat(mark), os.lstat(mark.parent)
    except OSError:
        return False
    me = this_process(environ)
    if me.takes(Owned(directory.st_uid, directory.st_mode), Owned(file.st_uid)):
        return True
    try:
        with open(trusted, "rb") as listing:
            return is_listed(listing.read(MOST_LIST), os.fsencode(mark.parent))
    except OSError:
        return False


def is_listed(listing: bytes, directory: bytes) -> bool:
    """Whether a list names a directory: a line is its canonical path, that of
    one above it and `/*`, or `*` for all."""
    for line in listing.split(b"\n"):
        line = line.strip(b" \t\r\f")
        if line == b"*" or (line.startswith(b"/") and line == directory):
            return True
        below = line[:-1] if line.startswith(b"/") and line.endswith(b"/*") else None
        if below and directory.startswith(below) and len(directory) > len(below):
            return True
    return False


__all__ = ["Me", "Owned", "is_listed", "takes", "this_process"]
