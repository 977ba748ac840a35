"""SEC-6, SEC-8: plays the cases of bindings/conformance/trust."""

import json
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, Dict

from touchmark_client import Workspace
from touchmark_client.trust import Me, Owned, is_listed

from .vectors import DIRECTORY


class Trust(unittest.TestCase):
    def each(self, name: str, outcome: str, play: Callable[[Dict[str, Any]], bool]) -> None:
        cases = json.loads((DIRECTORY / "trust" / name).read_text())
        self.assertGreater(len(cases), 3)
        for case in cases:
            self.assertEqual(play(case), case[outcome], case["name"])

    def test_whose_marks_are_taken_over(self) -> None:
        self.each("marks.json", "taken", lambda case: me(case).takes(owned(case["directory"]), owned(case["file"])))

    def test_which_directories_a_list_names(self) -> None:
        def play(case: Dict[str, Any]) -> bool:
            return is_listed(case["list"].encode(), case["directory"].encode())

        self.each("listed.json", "listed", play)

    def test_who_may_answer(self) -> None:
        self.each("peers.json", "heard", lambda case: me(case).hears(case["peer"]))

    def test_marks_that_others_could_have_put_there_are_passed_over(self) -> None:
        with tempfile.TemporaryDirectory() as home:
            root = Path(home).resolve()
            outer, deep = root / "o", root / "o" / "i"
            deep.mkdir(parents=True)
            (outer / ".git").mkdir()
            environ = {"HOME": home, "XDG_RUNTIME_DIR": home}
            self.assertEqual(Workspace.find(deep, environ).root, outer)
            os.chmod(outer, 0o777)
            self.assertEqual(Workspace.find(deep, environ).root, deep)
            trusted = root / ".config" / "touchmark" / "trusted"
            trusted.parent.mkdir(parents=True)
            trusted.write_bytes(os.fsencode(outer))
            self.assertEqual(Workspace.find(deep, environ).root, outer)


def me(case: Dict[str, Any]) -> Me:
    return Me(case["uid"], case.get("sudo"))


def owned(found: Dict[str, Any]) -> Owned:
    return Owned(found["uid"], int(found.get("mode", "0"), 8))


if __name__ == "__main__":
    unittest.main()
