"""A workspace with a separate home directory, whose daemon the client
starts."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Dict, Mapping, Optional

from touchmark_client import Client, Start, TouchmarkError, Workspace
from touchmark_client.start import wait_until_ended

BINARY = os.environ.get("TOUCHMARK_BIN", "")
# A deadline in seconds. Only a daemon that hangs reaches it, even on a busy
# machine.
PATIENCE = 60.0


class World:
    """Temporary directories and a daemon. Call `close` at the end."""

    def __init__(self, files: Optional[Mapping[str, str]] = None) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="tmp")).resolve()
        self.runtime = self.base / "r"
        self.root = self.base / "ws"
        for directory in (self.runtime, self.root, self.base / "home"):
            directory.mkdir(mode=0o700)
        self.environ: Dict[str, str] = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TOUCHMARK_")},
            "HOME": str(self.base / "home"),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "XDG_STATE_HOME": str(self.base / "state"),
            "XDG_CONFIG_HOME": str(self.base / "config"),
            "XDG_CACHE_HOME": str(self.base / "cache"),
        }
        for name, text in (files or {}).items():
            self.write(name, text)
        self.workspace = Workspace.at(self.root, self.environ)
        self.start = Start(BINARY, deadline=PATIENCE, environ=self.environ)

    def client(self, deadline: float = PATIENCE) -> Client:
        return Client(self.workspace, start=self.start, deadline=deadline)

    def path(self, name: str) -> Path:
        return self.root / name

    def write(self, name: str, data: "str | bytes") -> None:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)

    def text(self, name: str) -> str:
        return self.path(name).read_text(encoding="utf-8")

    def stop(self) -> None:
        """Stops the daemon, if one runs."""
        try:
            with Client(self.workspace, start=False, deadline=PATIENCE) as client:
                client.shutdown()
        except TouchmarkError:
            pass
        wait_until_ended(self.workspace, PATIENCE)

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.base, ignore_errors=True)
