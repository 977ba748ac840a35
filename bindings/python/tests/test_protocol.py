"""Tests of the protocol without a socket."""

import json
import os
import unittest
from typing import Any, List, Tuple

from touchmark_client import BadAnswer, Busy, Call, ConnectionClosed, Refused, TooLarge, exact
from touchmark_client.names import on_the_wire
from touchmark_client.protocol import Conversation

ROOT = b"/w s"


class Talk(unittest.TestCase):
    def setUp(self) -> None:
        self.talk = Conversation(ROOT)
        self.came: List[Tuple[Any, Any]] = []

    def ask(self, method: str = "ping", **params: Any) -> int:
        number, _ = self.talk.ask(Call[Any](method, params), 1.5, lambda *came: self.came.append(came))
        return number

    def say(self, **message: Any) -> None:
        self.talk.receive(json.dumps(message).encode() + b"\n")

    def test_answers_find_their_callers_in_any_order_and_pieces(self) -> None:
        one, two = self.ask(), self.ask()
        said = b"".join(json.dumps({"id": id, "result": {"n": id}}).encode() + b"\n" for id in (two, one))
        for byte in said:
            self.talk.receive(bytes([byte]))
        self.assertEqual(self.came, [({"n": two}, None), ({"n": one}, None)])

    def test_the_deadline_travels_and_what_is_none_does_not(self) -> None:
        _, line = self.talk.ask(Call[Any]("x", {"a": None, "b": 0, "args": {"c": None}}), 1.5, None)
        self.assertEqual(json.loads(line)["params"], {"b": 0, "args": {"c": None}, "withinMs": 1500})

    def test_an_answer_nobody_waits_for_is_dropped(self) -> None:
        number = self.ask()
        self.talk.give_up(number)
        self.say(id=number, result={})
        self.assertEqual(self.came, [])

    def test_errors_are_classes_with_code_and_hint(self) -> None:
        number = self.ask()
        self.say(id=number, error={"code": -32012, "message": "held", "data": {"code": "busy", "hint": "wait", "holder": "t"}})
        error = self.came[0][1]
        self.assertIsInstance(error, Busy)
        self.assertEqual((error.code, error.hint, error.number, error.data["holder"]), ("busy", "wait", -32012, "t"))
        number = self.ask()
        self.say(id=number, error={"code": -1, "message": "new", "data": {"code": "newer"}})
        self.assertIs(type(self.came[1][1]), Refused)

    def test_events_come_in_order_and_outlive_the_end(self) -> None:
        for n in (1, 2):
            self.say(method="event", params={"n": n})
        self.ask()
        self.talk.end(None)
        self.assertIsInstance(self.came[0][1], ConnectionClosed)
        self.assertEqual([self.talk.event(), self.talk.event()], [{"n": 1}, {"n": 2}])
        with self.assertRaises(ConnectionClosed):
            self.talk.event()
        with self.assertRaises(ConnectionClosed):
            self.ask()

    def test_what_is_no_answer_and_what_is_too_large(self) -> None:
        for line in (b"nonsense\n", b"[1]\n"):
            with self.assertRaises(BadAnswer):
                self.talk.receive(line)
        with self.assertRaises(TooLarge):
            self.ask("file/write", text="x" * (17 << 20))


class Names(unittest.TestCase):
    def test_names_that_are_not_utf8_are_uris(self) -> None:
        raw = os.fsdecode(b"a\xff b")
        self.assertEqual(on_the_wire({"path": raw}, ROOT), {"uri": "file:///w%20s/a%FF%20b"})
        self.assertEqual(on_the_wire({"path": b"a", "paths": [b"b", b"\xff"]}, ROOT), {"path": "a", "paths": ["b", "file:///w%20s/%FF"]})
        self.assertEqual(on_the_wire({"files": [{"path": b"/x/\xff"}]}, ROOT), {"files": [{"uri": "file:///x/%FF"}]})
        row = {"path": "a\ufffd b", "uri": "file:///w%20s/a%FF%20b"}
        self.assertEqual(exact(row, "/w s"), raw)
        self.assertEqual(exact({"path": "a"}, "/w s"), "a")
