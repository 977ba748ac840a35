"""Plays the conformance vectors with both clients."""

import asyncio
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import touchmark_client
from touchmark_client import Refused, aio

from .vectors import NAME, Play, vectors
from .world import PATIENCE, World


# The number of vectors that are played in parallel; mostly they wait for
# daemons.
LANES = 4


def wrong_ones(play: Callable[[World, Play, Dict[str, Any]], None]) -> List[str]:
    """Plays each vector in a separate world. Returns the failures."""

    def one(family: str, vector: Dict[str, Any]) -> Optional[str]:
        world = World(vector.get("files"))
        try:
            play(world, Play(world.root), vector)
        except (AssertionError, touchmark_client.TouchmarkError) as error:
            return f"{family}: {vector['name']}: {error}"
        finally:
            world.close()
        return None

    with ThreadPoolExecutor(LANES) as lanes:
        came = lanes.map(lambda each: one(*each), vectors())
        return [wrong for wrong in came if wrong is not None]


class Vectors(unittest.TestCase):
    def test_blocking(self) -> None:
        self.assertEqual(wrong_ones(blocking), [])

    def test_asyncio(self) -> None:
        self.assertEqual(wrong_ones(lambda *each: asyncio.run(awaiting(*each))), [])


def blocking(world: World, play: Play, vector: Dict[str, Any]) -> None:
    with world.client() as client:
        for number, step in enumerate(vector["steps"], 1):
            if play.do(step):
                continue
            if "event" in step:
                until = time.monotonic() + PATIENCE
                while play.mismatch(step["event"], came(client.next_event(until - time.monotonic()), step)):
                    pass
                continue
            result, error = None, None
            try:
                result = client.request(step["call"], play.fill(step.get("params", {})))
            except Refused as refused:
                error = (refused.number, refused.data)
            play.check(number, step, result, error)


async def awaiting(world: World, play: Play, vector: Dict[str, Any]) -> None:
    async with aio.Client(world.workspace, start=world.start, deadline=PATIENCE) as client:
        for number, step in enumerate(vector["steps"], 1):
            if play.do(step):
                continue
            if "event" in step:
                until = time.monotonic() + PATIENCE
                while play.mismatch(step["event"], came(await client.next_event(until - time.monotonic()), step)):
                    pass
                continue
            result, error = None, None
            try:
                result = await client.request(step["call"], play.fill(step.get("params", {})))
            except Refused as refused:
                error = (refused.number, refused.data)
            play.check(number, step, result, error)


def came(event: Any, step: Dict[str, Any]) -> Any:
    assert event is not None, f"no event matches {step}"
    return event


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
