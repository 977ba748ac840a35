"""Names of files in Python and on the wire.

In Python a name that is not UTF-8 is bytes, or a str with surrogates
(`os.fsdecode`). JSON cannot contain either, so the name is sent as a `file://`
URI (docs/protocol.md).
"""

import os
from typing import Any, Mapping, Union
from urllib.parse import quote_from_bytes, unquote_to_bytes

# Members that contain JSON of any shape, which is not changed: a tool's
# arguments or result, or an agent's event.
FREE = ("args", "result", "input")

# Characters that are not percent-encoded in a URI's path, in addition to RFC
# 3986's unreserved characters, which `quote` never encodes.
PLAIN = "/"


def on_the_wire(params: Mapping[str, Any], root: bytes) -> Any:
    """Returns parameters as JSON: without members that are None, and with
    names that are not UTF-8 as URIs."""
    out = {}
    for name, value in params.items():
        if value is None:
            continue
        if name in FREE:
            out[name] = value
        elif name == "path" and _is_raw(value):
            out["uri"] = uri(value, root)
        else:
            out[name] = _value(value, root)
    return out


def _value(value: Any, root: bytes) -> Any:
    if isinstance(value, Mapping):
        return on_the_wire(value, root)
    if isinstance(value, (bytes, os.PathLike)):
        return uri(value, root) if _is_raw(value) else os.fsdecode(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [uri(one, root) if _is_raw(one) else _value(one, root) for one in value]
    return value


def _is_raw(value: Any) -> bool:
    if not isinstance(value, (str, bytes, os.PathLike)):
        return False
    try:
        os.fsencode(value).decode("utf-8")
    except UnicodeError:
        return True
    return False


def uri(name: Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"], root: bytes) -> str:
    """Returns the `file://` URI of a name, relative to `root` or absolute."""
    return "file://" + quote_from_bytes(os.path.join(root, os.fsencode(name)), safe=PLAIN)


def exact(row: Mapping[str, Any], root: "Union[str, bytes, os.PathLike[str]]", name: str = "path") -> str:
    """Returns the exact name in a reply's row, as `os.fsdecode` returns it:
    relative to the workspace, whose path is `root`."""
    spoken = row.get("uri" if name == "path" else name + "Uri")
    if not isinstance(spoken, str):
        return str(row[name])
    raw = unquote_to_bytes(spoken[len("file://"):])
    return os.fsdecode(os.path.relpath(raw, os.fsencode(root)))


__all__ = ["exact", "on_the_wire", "uri"]
