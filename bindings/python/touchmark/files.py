"""Files as this process reads and writes them itself."""

import errno
import hashlib
import os
import stat
from base64 import b64encode
from pathlib import Path
from typing import Optional, TypedDict, Union

Data = Union[str, bytes]


def hash_of(data: Data) -> str:
    """The hash by which touchmark knows a content."""
    return hashlib.sha256(as_bytes(data)).hexdigest()


def as_bytes(data: Data) -> bytes:
    """A text as the bytes of a file; surrogates are bytes that were not UTF-8."""
    return data.encode("utf-8", "surrogateescape") if isinstance(data, str) else bytes(data)


def as_text(data: bytes) -> str:
    """The other way round, so that nothing is lost between the two."""
    return data.decode("utf-8", "surrogateescape")


class Spoken(TypedDict, total=False):
    """Either of the two."""

    text: str
    base64: str


def spoken(data: bytes) -> Spoken:
    """Bytes as `file/write` takes them."""
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode("ascii")}


def read(target: Path) -> bytes:
    """A regular file's bytes. Nothing else is opened: a FIFO would wait."""
    with open(os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(target))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(target))
        return file.read()


def read_or_none(target: Path) -> Optional[bytes]:
    """The same; None where there is no file."""
    try:
        return read(target)
    except FileNotFoundError:
        return None


def write(target: Path, data: bytes, create_directories: bool = False) -> None:
    """Writes plainly, in place."""
    if create_directories:
        target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "wb") as file:
        file.write(data)


__all__ = ["Data", "as_bytes", "as_text", "hash_of"]
