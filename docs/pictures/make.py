#!/usr/bin/env python3
"""Draws two pictures of a terminal of 80 columns: docs/pictures/refused.svg,
Claude Code that is refused with the user's line, and docs/pictures/terminal.svg,
a session of a user and two agents.

Needs `touchmark` on the PATH (or in TOUCHMARK_BIN), cargo, git, and the package
rich. Everything happens in temporary directories, with real daemons. Claude Code
is the real program, fetched and played by a test with a scripted model on
loopback, without a key (tests/src/agents/picture.rs).
"""

import json
import os
import pty
import re
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

HERE = Path(__file__).resolve().parent
PROGRAM = os.environ.get("TOUCHMARK_BIN") or shutil.which("touchmark")
COLUMNS = 80

# One of the dark themes that people use, as rich wants it: background,
# foreground, eight colours, the eight bright ones.
THEME = TerminalTheme(
    (30, 34, 42),
    (220, 223, 228),
    [(60, 64, 72), (224, 108, 117), (152, 195, 121), (229, 192, 123),
     (97, 175, 239), (198, 120, 221), (86, 182, 194), (220, 223, 228)],
    [(110, 116, 128), (240, 128, 137), (172, 215, 141), (245, 208, 143),
     (117, 195, 255), (218, 140, 241), (106, 202, 214), (255, 255, 255)],
)

# rich's own frame, without the font that it would fetch from elsewhere.
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""

CART = """def total(prices):
    result = 0
    for price in prices:
        result += price
    return result


def show(prices):
    print(total(prices))
"""


class Story:
    """A workspace, and the environment of everything that runs in it."""

    def __init__(self, root: Path) -> None:
        self.shop = root / "shop"
        self.shop.mkdir()
        self.env = {
            "HOME": str(root), "PATH": os.environ["PATH"], "TERM": "xterm-256color",
            "LANG": "C.UTF-8", "COLUMNS": str(COLUMNS), "TOUCHMARK_PAGER": "cat",
        }
        for who in ("AUTHOR", "COMMITTER"):
            self.env[f"GIT_{who}_NAME"] = "you"
            self.env[f"GIT_{who}_EMAIL"] = "you@example.com"

    def run(self, *command: str, fails: bool = False) -> None:
        done = subprocess.run(command, cwd=self.shop, env=self.env, capture_output=True, text=True)
        if (done.returncode != 0) != fails:
            raise SystemExit(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")

    def call(self, method: str, fails: bool = False, **params: object) -> None:
        self.run(str(PROGRAM), "call", method, json.dumps(params), fails=fails)
        # The feed writes a line for each; people take their time as well.
        time.sleep(0.3)

    def save(self, old: str, new: str) -> None:
        cart = self.shop / "cart.py"
        cart.write_text(cart.read_text().replace(old, new))
        time.sleep(0.3)

    def shows(self, *command: str) -> str:
        """What a command prints on a terminal."""
        watched = Terminal(self, *command)
        watched.process.wait()
        return watched.screen()


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, story: Story, *command: str) -> None:
        self.main, side = pty.openpty()
        import fcntl, struct, termios
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            command, cwd=story.shop, env=story.env, stdin=side, stdout=side, stderr=side
        )
        os.close(side)
        self.written = b""
        # A command that nobody reads would wait.
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        # At the command's end reading fails.
        try:
            while more := os.read(self.main, 65536):
                self.written += more
        except OSError:
            pass

    def screen(self) -> str:
        """What the ended command has left on the screen."""
        self.reader.join()
        rows: list[str] = []
        at = 0
        text = self.written.decode().replace("\r", "")
        for part in re.split(r"(\n|\x1b\[\d*[AHJK])", text):
            if part == "\n":
                at += 1
            elif part == "\x1b[J":
                del rows[at:]
            elif up := re.fullmatch(r"\x1b\[(\d+)A", part):
                at = max(0, at - int(up[1]))
            elif part and part != "\x1b[K":
                rows += [""] * (at + 1 - len(rows))
                rows[at] = part
        return "\n".join(rows) + "\n"


def play(story: Story) -> str:
    (story.shop / "cart.py").write_text(CART)
    story.run("git", "init", "-q", ".")
    story.run("git", "add", ".")
    story.run("git", "commit", "-qm", "Add a cart")
    touchmark = str(PROGRAM)
    story.call("ping")
    feed = Terminal(story, touchmark, "watch")
    time.sleep(0.5)
    for session, agent in (("s1", "claude"), ("s2", "codex")):
        story.call("session/open", session=session, agent={"name": agent, "version": "1"})
        story.call("file/readText", session=session, path="cart.py")
    story.call("file/edit", session="s1", path="cart.py",
               oldString="return result", newString="return round(result, 2)")
    story.save("print(total(prices))", 'print("total:", total(prices))')
    # codex writes from its old copy: refused.
    story.call("file/write", session="s2", path="cart.py", text="from math import fsum\n", fails=True)
    story.call("file/readText", session="s2", path="cart.py")
    story.call("file/edit", session="s2", path="cart.py",
               oldString="    result = 0\n", newString="    result = 0.0\n")
    feed.process.terminate()
    shown = prompt("touchmark watch") + feed.screen().rstrip() + "\n\n"
    shown += prompt("touchmark blame cart.py") + story.shows(touchmark, "blame", "cart.py") + "\n"
    shown += prompt("touchmark undo claude-1 --yes")
    shown += story.shows(touchmark, "undo", "claude-1", "--yes") + "\n"
    shown += prompt("git diff --stat") + story.shows("git", "--no-pager", "diff", "--stat")
    story.run(touchmark, "stop")
    return shown


def refused() -> str:
    """Claude Code's screen, from the prompt on."""
    with tempfile.TemporaryDirectory() as root:
        screen = Path(root) / "screen"
        test = "real_agents::hook4_the_user_sees_claude_code_refused_with_the_users_line"
        subprocess.run(
            ["cargo", "test", "--profile", "test", "-p", "touchmark-tests", test],
            cwd=HERE, check=True,
            env={**os.environ, "TOUCHMARK_PARTS": "1", "TOUCHMARK_PICTURE": str(screen)},
        )
        return plain(screen.read_text()) + "\n"


def plain(screen: str) -> str:
    """A row has movements of the cursor where it has blanks, and few fonts have
    Claude Code's sign for what belongs to a call."""
    rows = re.sub(r"\x1b\[(\d*)C", lambda found: " " * int(found[1] or 1), screen)
    return rows.replace("\u23bf", "\u2514")


def draw(shown: str, name: str, title: str) -> None:
    console = Console(width=COLUMNS, record=True, file=open(os.devnull, "w"), force_terminal=True)
    console.print(Text.from_ansi(shown))
    picture = console.export_svg(title=title, theme=THEME, code_format=FRAME, unique_id=name)
    (HERE / f"{name}.svg").write_text(picture)


def prompt(command: str) -> str:
    return f"\x1b[1;32m$\x1b[0m \x1b[1m{command}\x1b[0m\n"


def main() -> None:
    if not PROGRAM:
        raise SystemExit("touchmark is not on the PATH; name it in TOUCHMARK_BIN")
    with tempfile.TemporaryDirectory() as root:
        shown = play(Story(Path(root)))
    draw(shown, "terminal", "touchmark")
    draw(refused(), "refused", "claude")


if __name__ == "__main__":
    main()
