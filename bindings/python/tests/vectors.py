"""Reads the conformance vectors (bindings/conformance/README.md), fills in
values and compares results."""

import base64
import hashlib
import json
import re
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple
from urllib.parse import quote_from_bytes

DIRECTORY = Path(__file__).resolve().parent.parent.parent / "conformance"
HOUR_MS = 3600 * 1000


def vectors() -> Iterator[Tuple[str, Dict[str, Any]]]:
    """Yields each vector with the name of its family."""
    for file in sorted(DIRECTORY.glob("*.json")):
        for vector in json.loads(file.read_text(encoding="utf-8")):
            yield file.stem, vector


class Play:
    """The workspace of one vector, and the values it has stored."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.kept: Dict[str, Any] = {}

    def fill(self, value: Any) -> Any:
        """Returns parameters with the special strings filled in."""
        if isinstance(value, dict):
            return {name: self.fill(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.fill(one) for one in value]
        return self.special(value)

    def special(self, value: Any) -> Any:
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        word, colon, rest = value[1:].partition(":")
        if colon and word == "hash":
            return hashlib.sha256(rest.encode()).hexdigest()
        if colon and word == "path":
            return str(self.root / rest)
        if colon and word == "uri":
            return f"file://{quote_from_bytes(bytes(self.root))}/{rest}"
        if not colon and word in self.kept:
            return self.kept[word]
        raise AssertionError(f"{value} means nothing here")

    def mismatch(self, wanted: Any, got: Any, where: str = "") -> Optional[str]:
        """Returns where and how two values differ; None if they match."""
        if wanted == "$absent":
            return None if got is None else f"{where}: {got!r} is there"
        if isinstance(wanted, str) and wanted.startswith("$"):
            return self._mismatch_special(wanted, got, where)
        if isinstance(wanted, dict):
            if not isinstance(got, dict):
                return f"{where}: {got!r} is no object"
            return self._first(self.mismatch(one, got.get(name), f"{where}.{name}") for name, one in wanted.items())
        if isinstance(wanted, list):
            if not isinstance(got, list) or len(got) != len(wanted):
                return f"{where}: {got!r} instead of {len(wanted)} elements"
            return self._first(self.mismatch(one, got[n], f"{where}[{n}]") for n, one in enumerate(wanted))
        # True must not match 1.
        same = type(wanted) is type(got) and wanted == got
        return None if same else f"{where}: {got!r} instead of {wanted!r}"

    def _mismatch_special(self, wanted: str, got: Any, where: str) -> Optional[str]:
        word, _, rest = wanted[1:].partition(":")
        if word == "any":
            return f"{where}: nothing there" if got is None else None
        if word == "keep":
            self.kept[rest] = got
            return f"{where}: nothing there" if got is None else None
        if word == "time":
            near = isinstance(got, int) and abs(got - time.time() * 1000) < HOUR_MS
            return None if near else f"{where}: {got!r} is no time of now"
        if word == "contains":
            return None if isinstance(got, str) and rest in got else f"{where}: {got!r} is without {rest!r}"
        return None if got == self.special(wanted) else f"{where}: {got!r} instead of {wanted}"

    @staticmethod
    def _first(found: Iterator[Optional[str]]) -> Optional[str]:
        return next((one for one in found if one is not None), None)

    def do(self, step: Dict[str, Any]) -> bool:
        """Carries out a step that changes files. Returns False for other
        steps."""
        if "write" in step:
            path = self.root / step["write"]
            path.parent.mkdir(parents=True, exist_ok=True)
            data = base64.b64decode(step["base64"]) if "base64" in step else step["text"].encode()
            path.write_bytes(data)
        elif "delete" in step:
            (self.root / step["delete"]).unlink()
        elif "rename" in step:
            (self.root / step["rename"]).rename(self.root / step["to"])
        else:
            return False
        return True

    def came(self, step: Dict[str, Any], result: Any, error: Optional[Tuple[int, Dict[str, Any]]]) -> Optional[str]:
        """Returns what is wrong with the result of a call; None if nothing
        is."""
        if "error" in step:
            if error is None:
                return f"{result!r} instead of an error"
            number, data = error
            wrong = self.mismatch(step["error"], data, "error")
            if wrong is None and "number" in step and step["number"] != number:
                wrong = f"number: {number} instead of {step['number']}"
            return wrong
        if error is not None:
            return f"refused: {error}"
        return self.mismatch(step["result"], result, "result")

    def check(
        self, number: int, step: Dict[str, Any], result: Any, error: Optional[Tuple[int, Dict[str, Any]]]
    ) -> None:
        """Fails unless the result of a call is the expected one."""
        wrong = self.came(step, result, error)
        assert wrong is None, f"step {number}, {step['call']}: {wrong}"


def methods() -> List[str]:
    """Returns every method that a vector calls."""
    return sorted({step["call"] for _, vector in vectors() for step in vector["steps"] if "call" in step})


NAME = re.compile(r"[A-Z][A-Za-z]*\Z")
