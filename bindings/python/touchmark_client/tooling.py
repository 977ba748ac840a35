"""Wraps an agent's tools. A repeated call is answered with the earlier result
as long as every file that the result depends on has the same content as
then."""

import json
from functools import partial
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import calls, files
from .errors import Refused
from .files import Data, as_text
from .flow import Aside, Flow, Tool, Without, ask
from .shapes import CallChecked, FileText, Path
from .work import Work


class Output(NamedTuple):
    """The output of a tool, and the files that it depends on in addition to
    those that the arguments name."""

    result: Any
    paths: Sequence[Path] = ()


class Answer(NamedTuple):
    """The answer to give for a call of a tool.

    `cached`: whether the tool did not run. `message`: one sentence to put
    before a result that is not new. `notice`: why calls are not compared with
    earlier ones; reported once.
    """

    result: Any
    cached: bool = False
    message: Optional[str] = None
    notice: Optional[str] = None

    @property
    def text(self) -> str:
        """The result as text, preceded by the message."""
        result = self.result if isinstance(self.result, str) else json.dumps(self.result, ensure_ascii=False)
        return f"{self.message}\n\n{result}" if self.message else result


class Rules(NamedTuple):
    """How calls are compared. `enabled`: whether they are. `similar`: whether
    the earlier result also answers a call that is only similar."""

    enabled: bool = True
    similar: bool = False


class Tooling:
    """The flows of one session's tools."""

    def __init__(self, work: Work, rules: Rules) -> None:
        self.work = work
        self.rules = rules

    def call(self, name: str, args: Mapping[str, Any], run: Callable[[], Any]) -> Flow[Answer]:
        """Returns the result of an earlier call with these arguments, or runs
        the tool and stores its result. An exception of the tool is raised and
        not stored."""
        if not self.rules.enabled:
            return Answer(output((yield Tool(run)))[0])
        notice = None
        try:
            checked = yield from ask(self.work.link, calls.call_check(self.work.id, name, args=args))
            served = self._serve(checked)
            if served is not None:
                return served
        except Without as without:
            notice = unwatched(without.notice)
        except Refused as error:
            # An error of the daemon must not make the tool's call fail.
            notice = unwatched(str(error))
        result, paths = output((yield Tool(run)))
        record = calls.call_record(self.work.id, name, args=args, result=result, paths=list(paths) or None)
        try:
            yield from ask(self.work.link, record)
        except Without as without:
            notice = unwatched(without.notice) or notice
        except Refused as error:
            notice = unwatched(str(error))
        return Answer(result, notice=notice)

    def _serve(self, checked: CallChecked) -> Optional[Answer]:
        serves = checked["cached"] or (self.rules.similar and checked["duplicate"] == "similar")
        if not serves or checked.get("result") is None:
            return None
        return Answer(checked["result"], cached=True, message=checked.get("message"))

    def read_file(self, path: Path) -> Flow[Answer]:
        """Returns a file's text, or one sentence if the text is already in the
        context."""
        call = calls.file_read_text(self.work.id, path, force=None if self.rules.enabled else True)
        try:
            return told((yield from ask(self.work.link, call)))
        except Without as without:
            data = yield Aside(partial(files.read, self.work.target(path)))
            return Answer(as_text(data), notice=unwatched(without.notice))

    def write_file(self, path: Path, data: Data) -> Flow[Answer]:
        """Writes a file, unless it has changed since the session saw it. The
        session's next read of it returns the full text."""
        content = files.as_bytes(data)
        name = path if isinstance(path, str) else str(self.work.target(path))
        notice = None
        try:
            yield from ask(self.work.link, calls.file_write(self.work.id, path, **files.spoken(content)))
        except Without as without:
            yield Aside(partial(files.write, self.work.target(path), content))
            notice = unwatched(without.notice)
        return Answer(f"File written: {name}", notice=notice)


def output(made: Union[Output, Any]) -> Tuple[Any, Sequence[Path]]:
    return (made.result, made.paths) if isinstance(made, Output) else (made, ())


def unwatched(notice: Optional[str]) -> Optional[str]:
    """Returns the sentence which reports that tools run as if they were not
    wrapped."""
    return None if notice is None else f"[touchmark: {notice}; repeated calls are not recognised]"


def told(read: FileText) -> Answer:
    """Returns the answer for a read."""
    text, message = read.get("text"), read.get("message")
    if text is None:
        return Answer(message or "", cached=True)
    lines = [message] if message else []
    if read["encoding"] == "base64":
        lines.append("[not UTF-8: base64]")
    if read["truncated"]:
        shown = read.get("range")
        lines.append(f"[{shown['end'] if shown else 0} of {read['lineCount']} lines; read the rest by range]")
    return Answer(text, message="\n".join(lines) or None)


__all__ = ["Answer", "Output", "Rules"]
