"""Reads and writes files in this process, without the daemon."""

import errno
import hashlib
import os
import stat
from base64 import b64encode
from pathlib import Path
from typing import Optional, TypedDict, Union

Data = Union[str, bytes]


def hash_of(data: Data) -> str:
    """Returns the hash that identifies a content: SHA-256 as hex digits."""
    return hashlib.sha256(as_bytes(data)).hexdigest()


def as_bytes(data: Data) -> bytes:
    """Returns a text as a file's bytes. Surrogates become the bytes that were
    not UTF-8."""
    return data.encode("utf-8", "surrogateescape") if isinstance(data, str) else bytes(data)


def as_text(data: bytes) -> str:
    """Returns a file's bytes as text. `as_bytes` returns the same bytes
    again."""
    return data.decode("utf-8", "surrogateescape")


class Spoken(TypedDict, total=False):
    """A content as the text or base64 parameter of `file/write`."""

    text: str
    base64: str


def spoken(data: bytes) -> Spoken:
    """Returns bytes as the parameters of `file/write`."""
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode("ascii")}


def read(target: Path) -> bytes:
    """Returns a regular file's bytes. Other files raise an error; opening a
    FIFO would block."""
    with open(os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(target))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(target))
        return file.read()


def read_or_none(target: Path) -> Optional[bytes]:
    """Returns a regular file's bytes, or None if there is no file."""
    try:
        return read(target)
    except FileNotFoundError:
        return None


def write(target: Path, data: bytes, create_directories: bool = False) -> None:
    """Writes a file in place, without a guard."""
    if create_directories:
        target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "wb") as file:
        file.write(data)


__all__ = ["Data", "as_bytes", "as_text", "hash_of"]
