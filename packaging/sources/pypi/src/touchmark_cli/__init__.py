"""Where the program touchmark is that this package installed."""

import os
import sysconfig
from importlib.metadata import files


def program() -> str:
    """Returns the path of the program. Raises FileNotFoundError if it is missing."""
    for file in files("touchmark-cli") or []:
        if file.name == "touchmark":
            path = os.path.realpath(str(file.locate()))
            if os.path.isfile(path):
                return path
    raise FileNotFoundError(os.path.join(sysconfig.get_path("scripts"), "touchmark"))
