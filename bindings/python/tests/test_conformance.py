"""The conformance vectors on both clients."""

import asyncio
import time
import unittest
from typing import Any, Dict, Optional, Set, Tuple

import touchmark
from touchmark import Refused, aio

from .vectors import NAME, Play, vectors
from .world import PATIENCE, World


class Blocking(unittest.TestCase):
    def test_vectors(self) -> None:
        for family, vector in vectors():
            with self.subTest(family=family, vector=vector["name"]):
                world = World(vector.get("files"))
                try:
                    with world.client() as client:
                        self.play(Play(world.root), vector, client)
                finally:
                    world.close()

    def play(self, play: Play, vector: Dict[str, Any], client: touchmark.Client) -> None:
        for number, step in enumerate(vector["steps"]):
            if play.do(step):
                continue
            if "event" in step:
                self.wait(play, step["event"], client)
                continue
            result, error = None, None
            try:
                result = client.request(step["call"], play.fill(step.get("params", {})))
            except Refused as refused:
                error = (refused.number, refused.data)
            wrong = play.came(step, result, error)
            self.assertIsNone(wrong, f"step {number + 1}, {step['call']}: {wrong}")

    def wait(self, play: Play, wanted: Dict[str, Any], client: touchmark.Client) -> None:
        until = time.monotonic() + PATIENCE
        wrong: Optional[str] = "none came"
        while wrong is not None:
            event = client.next_event(until - time.monotonic())
            self.assertIsNotNone(event, f"no event matches {wanted}; the last: {wrong}")
            wrong = play.mismatch(wanted, event, "event")


class Asyncio(unittest.TestCase):
    def test_vectors(self) -> None:
        for family, vector in vectors():
            with self.subTest(family=family, vector=vector["name"]):
                world = World(vector.get("files"))
                try:
                    asyncio.run(self.play(world, vector))
                finally:
                    world.close()

    async def play(self, world: World, vector: Dict[str, Any]) -> None:
        play = Play(world.root)
        async with aio.Client(world.workspace, start=world.start, deadline=PATIENCE) as client:
            for number, step in enumerate(vector["steps"]):
                if play.do(step):
                    continue
                if "event" in step:
                    await self.wait(play, step["event"], client)
                    continue
                result, error = None, None
                try:
                    result = await client.request(step["call"], play.fill(step.get("params", {})))
                except Refused as refused:
                    error = (refused.number, refused.data)
                wrong = play.came(step, result, error)
                self.assertIsNone(wrong, f"step {number + 1}, {step['call']}: {wrong}")

    async def wait(self, play: Play, wanted: Dict[str, Any], client: aio.Client) -> None:
        until = time.monotonic() + PATIENCE
        wrong: Optional[str] = "none came"
        while wrong is not None:
            event = await client.next_event(until - time.monotonic())
            self.assertIsNotNone(event, f"no event matches {wanted}; the last: {wrong}")
            wrong = play.mismatch(wanted, event, "event")


class Format(unittest.TestCase):
    def test_names_are_unique_and_steps_are_known(self) -> None:
        seen: Set[Tuple[str, str]] = set()
        for family, vector in vectors():
            self.assertNotIn((family, vector["name"]), seen)
            seen.add((family, vector["name"]))
            self.assertLessEqual(set(vector), {"name", "rules", "files", "wires", "steps"})
            for step in vector["steps"]:
                if "call" in step:
                    self.assertEqual(("result" in step) + ("error" in step), 1, step)
            for name in kept(vector["steps"]):
                self.assertRegex(name, NAME)


def kept(value: Any) -> Any:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [name for one in value for name in kept(one)]
    if isinstance(value, str) and value.startswith("$keep:"):
        return [value[len("$keep:"):]]
    return []


if __name__ == "__main__":
    unittest.main()
