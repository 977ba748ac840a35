"""Sessions over the blocking client: with a daemon, without one, and across a
restart."""

import os
import signal
import socket
import subprocess
import threading
import unittest
import warnings
from typing import Any, List

import touchmark_client
from touchmark_client import Client, Feed, Gap, Output, Rules, Session, Start, Workspace
from touchmark_client.work import Work

from .world import BINARY, PATIENCE, World


class WithADaemon(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World({"a.txt": "one\ntwo\n", "b.txt": "b\n"})
        self.addCleanup(self.world.close)
        self.client = self.world.client()
        self.addCleanup(self.client.close)
        self.session = Session(self.client, "s", agent={"name": "tests", "version": "1"})

    def test_an_edit_is_marked_guarded_and_committed(self) -> None:
        self.assertEqual(self.session.read("a.txt"), "one\ntwo\n")
        with self.session.edit("a.txt") as f:
            self.assertEqual((f.text, f.exists), ("one\ntwo\n", True))
            f.replace("one", "1")
            self.assertEqual(self.world.text("a.txt"), "one\ntwo\n", "nothing is written before the end")
            with self.assertRaises(touchmark_client.Busy):
                other = Session(self.client, "other")
                other.read("a.txt")
                with other.edit("a.txt"):
                    self.fail("marked twice")
        self.assertEqual(self.world.text("a.txt"), "1\ntwo\n")
        assert f.written is not None
        self.assertEqual(f.written["outcome"], "applied")
        self.assertEqual(self.client.status()["openEdits"], 0)
        version = self.client.file_history("a.txt")["versions"][0]
        self.assertEqual((version["author"]["session"], version["evidence"]), ("s", "declared"))
        self.assertEqual(self.session.changed(), [])
        # The file does not exist yet.
        with self.session.edit("new/c.txt", create_directories=True) as f:
            self.assertFalse(f.exists)
            f.write("c\n")
        self.assertEqual(self.world.text("new/c.txt"), "c\n")

    def test_an_exception_or_nothing_new_leaves_nothing_behind(self) -> None:
        self.session.read("a.txt")
        with self.assertRaises(ZeroDivisionError):
            with self.session.edit("a.txt") as f:
                f.write("x")
                1 / 0
        with self.session.edit("a.txt"):
            pass
        self.assertEqual(self.client.status()["openEdits"], 0)
        self.world.write("a.txt", "user\n")
        self.assertEqual(self.session.changed()[0]["changedBy"], [{"kind": "user"}])

    def test_a_save_in_between_is_never_overwritten(self) -> None:
        self.session.read("a.txt")
        with self.assertRaises(touchmark_client.Stale) as refused:
            with self.session.edit("a.txt") as f:
                self.world.write("a.txt", "user\n")
                f.replace("one", "1")
        self.assertEqual(refused.exception.data["changedBy"], [{"kind": "user"}])
        self.assertEqual(self.world.text("a.txt"), "user\n")
        self.assertEqual(self.client.status()["openEdits"], 0)
        with self.assertRaises(touchmark_client.Stale):
            self.session.edit("a.txt").__enter__()
        # A process that has the file open could write to it after the exchange.
        self.session.read("a.txt")
        with open(self.world.path("a.txt"), "a", encoding="utf-8"):
            with self.assertRaises(touchmark_client.Conflict):
                self.session.write("a.txt", "mine\n")
        self.assertEqual(self.world.text("a.txt"), "user\n")

    def test_reads_and_writes(self) -> None:
        self.assertEqual(self.session.read("a.txt", lines=(2, 9)), "two\n")
        self.assertEqual(self.session.status("a.txt")[0]["state"], "fresh")
        with self.assertRaises(touchmark_client.NotRead) as refused:
            self.session.write("b.txt", "x")
        self.assertTrue(refused.exception.hint)
        self.assertEqual(refused.exception.data["path"], "b.txt")
        raw = b"n\xff.bin"
        self.session.write(raw, b"\xff\x00")
        self.assertEqual(self.session.read_bytes(raw), b"\xff\x00")
        self.session.write(raw, self.session.read(raw))
        self.assertEqual(self.session.read_bytes(raw), b"\xff\x00")
        self.assertIn(os.fsdecode(raw), [touchmark_client.exact(row, self.world.root) for row in self.session.status()])
        replaced = self.session.replace("a.txt", "two", "2")
        assert replaced is not None
        self.assertEqual(replaced["line"], 2)
        with self.assertRaises(touchmark_client.NoMatch):
            self.session.replace("a.txt", "gone", "x")
        os.mkfifo(self.world.path("pipe"))
        with self.assertRaises(OSError):
            self.session.read("pipe")

    def test_lists_have_no_end_too_soon(self) -> None:
        for n in range(7):
            self.world.write(f"f{n}", "x")
            self.session.read(f"f{n}")
        call = touchmark_client.calls.file_list("s", limit=2)
        self.assertEqual(len(self.session.rows(call, "files")), 7)

    def test_threads_share_a_client(self) -> None:
        wrong: List[Any] = []

        def work(name: str) -> None:
            session = Session(self.client, name)
            for n in range(20):
                if session.file_read("a.txt")["readCount"] != n + 1:
                    wrong.append((name, n))

        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_stopped_daemon_is_an_error_at_the_deadline(self) -> None:
        pid = self.client.status()["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            with self.assertRaises(touchmark_client.Deadline):
                self.client.ping(within=0.05)
        finally:
            os.kill(pid, signal.SIGCONT)
        self.client.ping()

    def test_a_daemon_that_died_is_started_again_and_a_feed_goes_on(self) -> None:
        self.session.read("a.txt")
        with Feed(self.client, ["version"], patience=PATIENCE) as feed:
            self.world.write("a.txt", "1\n")
            self.assertEqual(kind(feed.next(PATIENCE)), "version")
            os.kill(self.client.status()["pid"], signal.SIGKILL)
            # The session's methods reconnect, and start a daemon.
            self.world.write("a.txt", "2\n")
            self.assertEqual(len(self.session.changed()), 1)
            self.assertIs(feed.next(PATIENCE), Gap.RECONNECTED)
            missed: Any = feed.next(PATIENCE)
            self.assertEqual(missed["version"]["hash"], touchmark_client.hash_of("2\n"))

    def test_tools_do_not_do_twice_what_was_done(self) -> None:
        ran: List[str] = []

        def count(path: str, limit: int = 0) -> Output:
            ran.append(path)
            return Output({"lines": 2}, paths=["b.txt"])

        tools = self.session.tools()
        tool = tools.wrap("countLines", count)
        self.assertEqual(tool(path="a.txt"), touchmark_client.Answer({"lines": 2}))
        again = tool(path="./a.txt")
        self.assertTrue(again.cached)
        self.assertRegex(again.text, r'^\[Cached result from .*\]\n\n\{"lines": 2\}$')
        self.world.write("b.txt", "other\n")
        self.assertFalse(tool(path="a.txt").cached)
        self.assertEqual(len(ran), 2)
        shell = tools.wrap("bash", lambda command: command)
        self.assertFalse(shell(command="ls").cached or shell(command="ls").cached)
        self.assertEqual(tools.read_file("a.txt").text, "one\ntwo\n")
        self.assertEqual(tools.read_file("a.txt").text, "[File previously read: a.txt. Content unchanged since last read.]")
        tools.write_file("a.txt", "new\n")
        self.assertEqual(tools.read_file("a.txt").result, "new\n")
        similar = self.session.tools(Rules(similar=True)).wrap("countLines", count)
        self.assertFalse(tool(path="a.txt", limit=2).cached)
        self.assertFalse(tool(path="a.txt", limit=3).cached)
        self.assertTrue(similar(path="a.txt", limit=4).cached)
        self.assertFalse(self.session.tools(Rules(enabled=False)).wrap("countLines", count)(path="a.txt", limit=3).cached)


class WithoutADaemon(unittest.TestCase):
    def test_it_goes_on_without_tracking_and_says_so_once(self) -> None:
        world = World({"a.txt": "one\n"})
        self.addCleanup(world.close)
        client = Client(world.workspace, start=Start(str(world.base / "none"), environ=world.environ))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            session = Session(client, "s")
            self.assertIsNone(session.opened)
            self.assertEqual(session.read("a.txt"), "one\n")
            self.assertIsNone(session.write("b.txt", "b\n"))
            with session.edit("a.txt") as f:
                f.replace("one", "two")
            self.assertIsNone(session.replace("a.txt", "two", "three"))
            self.assertEqual((world.text("a.txt"), world.text("b.txt"), session.changed()), ("three\n", "b\n", []))
            with self.assertRaises(touchmark_client.Stale):
                with session.edit("a.txt") as f:
                    world.write("a.txt", "user\n")
                    f.write("mine\n")
        self.assertEqual([one.category for one in said], [touchmark_client.NotTracked])
        self.assertEqual(os.path.basename(said[0].filename), "test_session.py")
        with self.assertRaises(touchmark_client.StartFailed):
            session.file_status()
        # The answer of a tool reports the missing daemon, if it was not
        # reported yet.
        tools = Session.__new__(Session)
        tools.client, tools.id, tools.work = client, "t", Work("t", world.root)
        tool = tools.tools().wrap("grep", lambda pattern: pattern)
        self.assertRegex(tool(pattern="x").notice or "", "repeated calls are not recognised")
        self.assertIsNone(tool(pattern="x").notice)

    def test_a_binary_that_fails_says_why(self) -> None:
        world = World()
        self.addCleanup(world.close)
        script = world.base / "fails"
        script.write_text("#!/bin/sh\necho no luck >&2\nexit 7\n")
        script.chmod(0o700)
        with self.assertRaises(touchmark_client.StartFailed) as failed:
            Client(world.workspace, start=Start(str(script), environ=world.environ)).ping()
        self.assertIn("no luck", str(failed.exception))
        with self.assertRaises(touchmark_client.NoDaemon):
            Client(world.workspace, start=False).ping()


class Places(unittest.TestCase):
    def setUp(self) -> None:
        self.world = World()
        self.addCleanup(self.world.close)

    def find(self, directory: str) -> str:
        found = Workspace.find(self.world.path(directory), self.world.environ)
        return os.path.relpath(found.root, self.world.root)

    def test_the_innermost_mark_wins(self) -> None:
        deep = self.world.path("o/i/d")
        deep.mkdir(parents=True)
        self.assertEqual(self.find("o/i/d"), "o/i/d")
        self.world.path("o/.git").mkdir()
        self.assertEqual(self.find("o/i/d"), "o")
        self.world.write("o/i/.touchmark.toml", "")
        self.assertEqual(self.find("o/i/d"), "o/i")

    def test_a_running_daemon_marks(self) -> None:
        self.world.path("d").mkdir()
        self.assertEqual(self.find("d"), "d")
        with self.world.client() as client:
            client.ping()
        self.assertEqual(self.find("d"), ".")

    def test_the_socket_is_where_the_binary_says(self) -> None:
        for change in ({}, {"XDG_RUNTIME_DIR": ""}, {"TOUCHMARK_SOCKET": "/tmp/x.sock"}):
            environ = {**self.world.environ, **change}
            said = subprocess.check_output([BINARY, "--workspace", str(self.world.root), "socket"], env=environ)
            self.assertEqual(os.fsdecode(said.rstrip(b"\n")), str(Workspace.at(self.world.root, environ).socket))

    def test_another_workspaces_daemon_is_refused_with_both_paths(self) -> None:
        # SEC-8: TOUCHMARK_SOCKET is the same for every directory.
        other = self.world.base / "other"
        (other / ".git").mkdir(parents=True)
        with self.world.client() as client:
            client.ping()
            environ = {**self.world.environ, "TOUCHMARK_SOCKET": str(self.world.workspace.socket)}
            with self.assertRaises(touchmark_client.TouchmarkError) as refused:
                touchmark_client.Client(Workspace.at(other, environ), start=False).connect()
            self.assertEqual(refused.exception.code, "place")
            self.assertIn(str(other), str(refused.exception))
            self.assertIn(str(self.world.root), str(refused.exception))
            with touchmark_client.Client(Workspace.at(self.world.root, environ), start=False) as same:
                same.ping()

    def test_a_daemon_of_another_runtime_directory_is_found(self) -> None:
        # SEC-1: the lock file, next to the store, names the socket.
        self.world.path("d").mkdir()
        with self.world.client() as client:
            pid = client.status()["pid"]
            environ = {**self.world.environ, "XDG_RUNTIME_DIR": ""}
            found = Workspace.find(self.world.path("d"), environ)
            self.assertEqual(found.root, self.world.root)
            self.assertEqual(found.sockets()[0], Workspace.at(self.world.root, self.world.environ).socket)
            self.assertTrue(found.is_running())
            with touchmark_client.Client(found, start=False) as other:
                self.assertEqual(other.status()["pid"], pid)

    def test_places_of_others_are_not_trusted(self) -> None:
        # SEC-1: the directory of the socket must not be open to other users.
        directory = self.world.runtime / "touchmark"
        directory.mkdir(mode=0o755)
        with self.assertRaises(touchmark_client.BadPlace):
            self.world.client().ping()
        directory.rmdir()
        directory.symlink_to(self.world.base / "home")
        with self.assertRaises(touchmark_client.BadPlace):
            self.world.client().ping()
        directory.unlink()
        long = Workspace(self.world.root, self.world.base / ("x" * 120))
        with self.assertRaises(touchmark_client.BadPlace):
            Client(long, start=False).ping()

    def test_a_full_queue_is_an_error_at_the_deadline(self) -> None:
        # LIFE-4: a full queue of connections must not block the client.
        path = self.world.base / "full.sock"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(0)
            client = Client(Workspace(self.world.root, path), start=False, deadline=0.05)
            kept = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) for _ in range(4)]
            for one in kept:
                one.connect_ex(str(path))
            with self.assertRaises(touchmark_client.Deadline):
                client.ping()
            for one in kept:
                one.close()


def kind(event: Any) -> Any:
    return event["type"]
