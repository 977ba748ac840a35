"""The agent's loop works on a task through the client, hooks and MCP while a
user interferes."""

import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Callable

import touchmark_client
from examples.agent import Backend, ClientBackend
from touchmark_client import Session

from .agent_backends import HooksBackend, McpBackend
from .agent_task import FINAL, NOTICED, SESSION, STORY, play, repository, story


class Agent(unittest.TestCase):
    def setUp(self) -> None:
        self.world = repository()
        self.addCleanup(self.world.close)

    def works(
        self, backend: Callable[[touchmark_client.Client], Backend], refusals: int = 2
    ) -> None:
        """Checks that with this backend no change is lost and the feed is the
        same."""
        with self.world.client() as client:
            told = play(self.world, backend(client))
            for path, text in FINAL.items():
                self.assertEqual(self.world.text(path), text)
                self.assertEqual(story(client, path), STORY[path], path)
            # An edit is refused if the user has saved in between; the text
            # names the user.
            refused = [(tool, result.text) for tool, result in told if result.refused]
            self.assertEqual([tool for tool, _ in refused], ["edit_file"] * refusals)
            for _, text in refused:
                self.assertIn("outside any agent", text)
            # Each of these changes is reported once: the user's save, the
            # branch, the formatter.
            notices = [notice for _, result in told for notice in result.notices]
            # Changes by the agent's own command are reported separately.
            notices = [one for one in notices if not one.startswith("Changed while this command ran")]
            self.assertEqual([path for one in notices for path in NOTICED if is_about(one, path)], NOTICED, notices)
            self.assertEqual(Session(client, SESSION).changed(), [])
            self.assertEqual(client.audit()["differences"], [])

    def test_through_the_client(self) -> None:
        self.works(lambda client: ClientBackend(Session(client, SESSION)))

    def test_through_hooks(self) -> None:
        def backend(client: touchmark_client.Client) -> Backend:
            client.connect()
            return HooksBackend(self.world, SESSION)

        # Hooks allow an edit that does not touch the user's lines (HOOK-4).
        self.works(backend, refusals=0)

    def test_through_mcp(self) -> None:
        def backend(client: touchmark_client.Client) -> Backend:
            client.connect()
            made = McpBackend(self.world, SESSION)
            self.addCleanup(made.close)
            return made

        self.works(backend)

    def test_the_example_runs(self) -> None:
        example = Path(__file__).resolve().parent.parent / "examples" / "agent.py"
        environ = {**self.world.environ, "PYTHONPATH": str(example.parent.parent), "TOUCHMARK_BIN": self.world.start.binary}
        said = subprocess.check_output([sys.executable, str(example)], env=environ, universal_newlines=True)
        self.assertIn('refused: "greet.py" has changed', said)
        self.assertTrue(said.endswith("done\n# the user was here\nprint('good morning')\n"), said)


def is_about(notice: str, path: str) -> bool:
    """Returns whether a notice names a file; `test_calc.py` is not
    `calc.py`."""
    return re.search(rf"(?<![\w.]){re.escape(path)}", notice) is not None
