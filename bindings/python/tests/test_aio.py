"""Sessions for asyncio. The flows are shared with the blocking client, so
these tests check the code that carries them out."""

import asyncio
import os
import signal
import unittest
import warnings
from typing import Any, Awaitable, Callable

import touchmark_client
from touchmark_client import Gap, Start
from touchmark_client.aio import Client, Feed, Session

from .world import PATIENCE, World


class Asyncio(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World({"a.txt": "one\ntwo\n"})
        self.addCleanup(self.world.close)

    def play(self, scenario: Callable[[Client], Awaitable[None]], deadline: float = PATIENCE) -> None:
        async def main() -> None:
            async with Client(self.world.workspace, start=self.world.start, deadline=deadline) as client:
                await scenario(client)

        asyncio.run(main())

    def test_an_edit_and_a_save_in_between(self) -> None:
        async def scenario(client: Client) -> None:
            session = await Session.open(client, "s")
            self.assertEqual(await session.read("a.txt"), "one\ntwo\n")
            async with session.edit("a.txt") as f:
                f.replace("one", "1")
            self.assertEqual(self.world.text("a.txt"), "1\ntwo\n")
            with self.assertRaises(touchmark_client.Stale) as refused:
                async with session.edit("a.txt") as f:
                    self.world.write("a.txt", "user\n")
                    f.write("mine\n")
            self.assertEqual(refused.exception.data["changedBy"], [{"kind": "user"}])
            self.assertEqual([change["path"] for change in await session.changed()], ["a.txt"])
            # A cancelled edit is aborted.
            await session.read("a.txt")

            async def never() -> None:
                async with session.edit("a.txt"):
                    await asyncio.Event().wait()

            task = asyncio.ensure_future(never())
            while not (await client.status())["openEdits"]:
                await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual((await client.status())["openEdits"], 0)

        self.play(scenario)

    def test_many_calls_at_once_and_one_given_up(self) -> None:
        async def scenario(client: Client) -> None:
            session = await Session.open(client, "s")
            reads = await asyncio.gather(*[session.file_read("a.txt") for _ in range(100)])
            self.assertEqual([read["readCount"] for read in reads], list(range(1, 101)))
            pid = (await client.status())["pid"]
            os.kill(pid, signal.SIGSTOP)
            try:
                with self.assertRaises(touchmark_client.Deadline):
                    await client.ping(within=0.05)
            finally:
                os.kill(pid, signal.SIGCONT)
            await client.ping()

        self.play(scenario)

    def test_a_feed_outlives_the_daemon(self) -> None:
        async def scenario(client: Client) -> None:
            session = await Session.open(client, "s")
            await session.read("a.txt")
            async with await Feed.open(client, ["version"], patience=PATIENCE) as feed:
                self.world.write("a.txt", "1\n")
                await feed.next(PATIENCE)
                self.assertIsNone(await feed.next(0.001))
                await client.shutdown()
                self.assertEqual(len(await session.changed()), 1)
                self.assertIs(await feed.next(PATIENCE), Gap.RECONNECTED)
                self.world.write("a.txt", "2\n")
                async for said in feed:
                    assert isinstance(said, dict)
                    self.assertEqual(said["type"], "version")
                    break

        self.play(scenario)

    def test_tools_awaited_or_not(self) -> None:
        async def scenario(client: Client) -> None:
            tools = (await Session.open(client, "s")).tools()

            async def count(path: str) -> Any:
                await asyncio.sleep(0)
                return 2

            tool = tools.wrap("countLines", count)
            self.assertEqual(await tool(path="a.txt"), touchmark_client.Answer(2))
            self.assertTrue((await tool(path="a.txt")).cached)
            self.assertEqual((await tools.wrap("bash", lambda command: command)(command="ls")).result, "ls")
            await tools.read_file("a.txt")
            self.assertTrue((await tools.read_file("a.txt")).cached)

        self.play(scenario)

    def test_without_a_daemon_it_goes_on_and_says_so_once(self) -> None:
        async def scenario() -> None:
            client = Client(self.world.workspace, start=Start(str(self.world.base / "none")))
            session = await Session.open(client, "s")
            self.assertEqual(await session.read("a.txt"), "one\ntwo\n")
            async with session.edit("a.txt") as f:
                f.replace("one", "1")
            self.assertEqual((self.world.text("a.txt"), await session.changed()), ("1\ntwo\n", []))

        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            asyncio.run(scenario())
        self.assertEqual([one.category for one in said], [touchmark_client.NotTracked])
