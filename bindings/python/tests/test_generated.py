"""The generated modules are up to date, and all modules are valid Python
3.9."""

import ast
import json
import subprocess
import sys
import unittest
from pathlib import Path

from touchmark_client import refusals
from touchmark_client.aio_methods import ClientMethods as AioClientMethods
from touchmark_client.methods import ClientMethods, SessionMethods

from .vectors import methods

PACKAGE = Path(__file__).resolve().parent.parent


class Generated(unittest.TestCase):
    def test_current(self) -> None:
        generate = [sys.executable, str(PACKAGE / "tools" / "generate.py"), "--check"]
        checked = subprocess.run(generate, stdout=subprocess.PIPE, universal_newlines=True)
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_oldest_syntax(self) -> None:
        for file in sorted(PACKAGE.rglob("*.py")):
            with self.subTest(file=file.name):
                ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))

    def test_every_method_and_error_has_its_name(self) -> None:
        schema = json.loads((PACKAGE.parent.parent / "docs" / "protocol.schema.json").read_text(encoding="utf-8"))
        self.assertLessEqual(set(schema["methods"]), set(methods()), "each has a vector")
        for error in schema["errors"]:
            self.assertIn(error["name"], refusals.BY_CODE)
        for owner in (ClientMethods, AioClientMethods):
            self.assertTrue(hasattr(owner, "file_snapshot"))
            self.assertFalse(hasattr(owner, "file_read"), "it needs a session")
        self.assertTrue(hasattr(SessionMethods, "file_is_stale"))
