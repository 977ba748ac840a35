"""Which files and processes are trusted, by their owner: files that mark a
workspace (SEC-6), and processes that answer as its daemon (SEC-8). The cases
are in bindings/conformance/trust."""

import os
from pathlib import Path
from typing import Mapping, NamedTuple, Optional

OTHERS_WRITE = 0o002
# In a sticky directory, a user may remove only their own files.
STICKY = 0o1000
# The longest list of trusted directories that is read, in bytes.
MOST_LIST = 1 << 20


class Owned(NamedTuple):
    """Owner and mode of a file, as `lstat` returns them."""

    uid: int
    mode: int = 0


class Me(NamedTuple):
    """The user of this process. `sudo` is the user in `SUDO_UID`, who runs
    this process as root; None if it is not set."""

    uid: int
    sudo: Optional[int] = None

    def trusts(self, uid: int) -> bool:
        return uid in (self.uid, 0) or (self.uid == 0 and self.sudo == uid)

    def takes(self, directory: Owned, file: Owned) -> bool:
        """Returns whether a file in a directory is trusted: both belong to
        trusted users, and not every user may replace the file."""
        open_to_all = directory.mode & OTHERS_WRITE and not directory.mode & STICKY
        return self.trusts(file.uid) and self.trusts(directory.uid) and not open_to_all

    def hears(self, peer: int) -> bool:
        """Returns whether a process of the user `peer` may answer as this
        user's daemon."""
        return peer in (self.uid, 0)


def this_process(environ: Mapping[str, str]) -> Me:
    sudo = environ.get("SUDO_UID", "")
    return Me(os.geteuid(), int(sudo) if sudo.isascii() and sudo.isdigit() else None)


def takes(mark: Path, environ: Mapping[str, str], trusted: Path) -> bool:
    """Returns whether a mark exists and is trusted. The path of its directory
    must be canonical."""
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
    """Returns whether a list names a directory. Each line is the directory's
    canonical path, the path of a directory above it followed by `/*`, or `*`
    for all directories."""
    for line in listing.split(b"\n"):
        line = line.strip(b" \t\r\f")
        if line == b"*" or (line.startswith(b"/") and line == directory):
            return True
        below = line[:-1] if line.startswith(b"/") and line.endswith(b"/*") else None
        if below and directory.startswith(below) and len(directory) > len(below):
            return True
    return False


__all__ = ["Me", "Owned", "is_listed", "takes", "this_process"]
