"""The protocol without a socket: converts between bytes and messages, assigns
answers to their callers by id, and queues events."""

import copy
import json
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from .call import Call
from .errors import BadAnswer, ConnectionClosed, Lagged, Refused, TouchmarkError
from .names import on_the_wire
from .refusals import BY_CODE, TooLarge
from .shapes import Event

PROTOCOL = 2
# The largest message, in bytes (LIM-1).
MAX_MESSAGE = 16 << 20
# The maximum number of events that are queued until they are read.
MAX_WAITING_EVENTS = 65536

# A callback for the end of a request: receives its result or an error.
Done = Callable[[Any, Optional[TouchmarkError]], None]


def refusal(error: Any) -> Refused:
    """Returns the exception for an error object from the daemon."""
    data = error.get("data") or {}
    kind = BY_CODE.get(str(data.get("code")), Refused)
    return kind(str(error.get("message", "")), int(error.get("code", 0)), data)


class Conversation:
    """The pending requests and the unread events of one connection. The caller
    must make sure that calls do not overlap."""

    def __init__(self, root: bytes) -> None:
        self.root = root
        self.ended: Optional[TouchmarkError] = None
        self._waiting: Dict[int, Done] = {}
        self._events: Deque[Event] = deque()
        self._next = 1
        self._partial: List[bytes] = []
        self._length = 0

    def ask(self, call: "Call[Any]", within: Optional[float], done: Optional[Done]) -> Tuple[int, bytes]:
        """Returns the request's id and its bytes. The request includes the
        deadline, so that the daemon does not carry it out after the caller has
        stopped waiting (ATTR-9)."""
        if self.ended is not None:
            raise copy.copy(self.ended)
        params = on_the_wire(call.params, self.root)
        if within is not None:
            params["withinMs"] = max(1, int(within * 1000))
        number = self._next
        self._next += 1
        message = {"jsonrpc": "2.0", "id": number, "method": call.method, "params": params}
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        sent = line.encode("utf-8") + b"\n"
        if len(sent) > MAX_MESSAGE:
            data = {"code": "tooLarge", "limit": MAX_MESSAGE, "size": len(sent), "hint": "ask in smaller parts"}
            raise TooLarge(f"{call.method}: {len(sent)} bytes in one message", -32019, data)
        if done is not None:
            self._waiting[number] = done
        return number, sent

    def give_up(self, number: int) -> None:
        """Stops waiting for an answer. It is dropped if it arrives later."""
        self._waiting.pop(number, None)

    def receive(self, data: bytes) -> bool:
        """Processes received bytes. Returns whether events were among them."""
        before = len(self._events)
        self._partial.append(data)
        self._length += len(data)
        if b"\n" in data:
            *lines, rest = b"".join(self._partial).split(b"\n")
            self._partial, self._length = [rest], len(rest)
            for line in lines:
                self._message(line)
        if self._length > 4 * MAX_MESSAGE:
            raise BadAnswer(f"{self._length} bytes without an end of the line")
        return len(self._events) > before

    def _message(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            number, error = message.get("id"), message.get("error")
        except (ValueError, AttributeError):
            raise BadAnswer(f"not an answer: {line[:80]!r}") from None
        if message.get("method") == "event":
            if len(self._events) >= MAX_WAITING_EVENTS:
                raise Lagged(f"{MAX_WAITING_EVENTS} events were waiting unread, so the connection was ended")
            self._events.append(message["params"])
        elif number is None and error is not None:
            # The error is about the connection itself: `denied` or `tooLarge`.
            raise refusal(error)
        else:
            done = self._waiting.pop(number, None)
            if done is not None:
                if error is not None:
                    done(None, refusal(error))
                else:
                    done(message.get("result"), None)

    def event(self) -> Optional[Event]:
        """Returns the next event, or None if there is none. Events that were
        received before the end of the connection are returned after it."""
        if self._events:
            return self._events.popleft()
        if self.ended is not None:
            raise copy.copy(self.ended)
        return None

    def end(self, reason: Optional[BaseException]) -> None:
        """Ends the connection: each pending request gets the error."""
        if self.ended is None:
            if isinstance(reason, TouchmarkError):
                self.ended = reason
            else:
                self.ended = ConnectionClosed(f"the daemon closed the connection{f': {reason}' if reason else ''}")
        waiting, self._waiting = self._waiting, {}
        for done in waiting.values():
            # Each caller gets a copy, since a traceback belongs to one raise.
            done(None, copy.copy(self.ended))


__all__ = ["Conversation", "PROTOCOL"]
