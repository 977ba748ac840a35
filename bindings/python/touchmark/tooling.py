"""Tools that do not do twice what was done already: a repeated call is
answered with the earlier result as long as every file it rests on holds what
it held then."""

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
    """What a tool answered, and which files that rests on beside those that
    its arguments name."""

    result: Any
    paths: Sequence[Path] = ()


class Answer(NamedTuple):
    """What is to be told in a tool's place.

    `cached`: the tool did not run. `message`: the line to say before a result
    that is not new. `notice`: said once, why nothing is compared.
    """

    result: Any
    cached: bool = False
    message: Optional[str] = None
    notice: Optional[str] = None

    @property
    def text(self) -> str:
        """The result as text, with the message before it."""
        result = self.result if isinstance(self.result, str) else json.dumps(self.result, ensure_ascii=False)
        return f"{self.message}\n\n{result}" if self.message else result


class Rules(NamedTuple):
    """How calls are compared: at all, and whether a call that is merely alike
    is answered with the earlier result too."""

    enabled: bool = True
    similar: bool = False


class Tooling:
    """The flows of one session's tools."""

    def __init__(self, work: Work, rules: Rules) -> None:
        self.work = work
        self.rules = rules

    def call(self, name: str, args: Mapping[str, Any], run: Callable[[], Any]) -> Flow[Answer]:
        """The earlier result of such a call, or the tool's own, which is
        remembered. What the tool raises is not."""
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
            # The tool is not to blame for what the daemon thinks of the call.
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
        """A file's text, or one line in place of what is in the context already."""
        call = calls.file_read_text(self.work.id, path, force=None if self.rules.enabled else True)
        try:
            return told((yield from ask(self.work.link, call)))
        except Without as without:
            data = yield Aside(partial(files.read, self.work.target(path)))
            return Answer(as_text(data), notice=unwatched(without.notice))

    def write_file(self, path: Path, data: Data) -> Flow[Answer]:
        """Writes a file, guarded; the next read of it is full."""
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
    """The line that says that tools run as if they were not wrapped."""
    return None if notice is None else f"[touchmark: {notice}; repeated calls are not recognised]"


def told(read: FileText) -> Answer:
    """A read as it is told."""
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
