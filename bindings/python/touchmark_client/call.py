"""A request as a value. Both the blocking and the asyncio client send it."""

from typing import Any, Generic, Mapping, TypeVar

R = TypeVar("R")


class Call(Generic[R]):
    """A request whose answer is an `R`. Parameters that are None are not
    sent."""

    __slots__ = ("method", "params")

    def __init__(self, method: str, params: Mapping[str, Any]) -> None:
        self.method = method
        self.params = params

    def __repr__(self) -> str:
        given = {name: value for name, value in self.params.items() if value is not None}
        return f"Call({self.method!r}, {given!r})"


__all__ = ["Call"]
