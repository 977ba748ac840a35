"""The agent's loop works a task through the client while a user interferes."""

import subprocess
import sys
import unittest
from pathlib import Path

from examples.agent import ClientBackend
from touchmark import Session

from .agent_task import FINAL, NOTICED, SESSION, STORY, play, repository, story


class Agent(unittest.TestCase):
    def test_through_the_client_nothing_is_lost(self) -> None:
        world = repository()
        self.addCleanup(world.close)
        with world.client() as client:
            told = play(world, ClientBackend(Session(client, SESSION)))
            for path, text in FINAL.items():
                self.assertEqual(world.text(path), text)
                self.assertEqual(story(client, path), STORY[path], path)
            # Refused where the user had saved in between, and said by whom.
            refused = [(tool, result.text) for tool, result in told if result.refused]
            self.assertEqual([tool for tool, _ in refused], ["edit_file", "edit_file"])
            for _, text in refused:
                self.assertIn("by the user", text)
            # Told once: the user's save, the branch, the formatter.
            notices = [notice for _, result in told for notice in result.notices]
            self.assertEqual(notices, [f"{path} was modified by the user" for path in NOTICED])
            self.assertEqual(client.audit()["differences"], [])

    def test_the_example_runs(self) -> None:
        world = repository()
        self.addCleanup(world.close)
        example = Path(__file__).resolve().parent.parent / "examples" / "agent.py"
        environ = {**world.environ, "PYTHONPATH": str(example.parent.parent), "TOUCHMARK_BIN": world.start.binary}
        said = subprocess.check_output([sys.executable, str(example)], env=environ, universal_newlines=True)
        self.assertIn("refused: greet.py has changed", said)
        self.assertTrue(said.endswith("done\n# the user was here\nprint('good morning')\n"), said)
