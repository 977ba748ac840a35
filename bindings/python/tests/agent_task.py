"""A task in a real git repository: a scripted model, and a user who works on
the same files at the same time. The final files must be the same for each
backend."""

import queue
import subprocess
import threading
from typing import Any, Callable, Dict, List, Tuple

import touchmark_client
from examples.agent import Backend, Model, Result, Step, run

from .world import PATIENCE, World

FILES = {
    "calc.py": "def add(a, b):\n    return a+b\n",
    "test_calc.py": "import unittest\nfrom calc import add\n\n\nclass Calc(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n",
    "notes.md": "# calc\n\nIt adds.\n",
    ".gitignore": "__pycache__\n",
}
TESTS = FILES["test_calc.py"].replace("import add", "import add, multiply") + (
    "\n    def test_multiply(self):\n        self.assertEqual(multiply(2, 3), 6)\n"
)
FINAL = {
    "calc.py": "# Keep this header: the user's.\ndef add(a, b):\n    return a + b\n\n\ndef multiply(a, b):\n    return a * b\n",
    # The user's formatter ran last.
    "test_calc.py": TESTS + "\n\nif __name__ == \"__main__\":\n    unittest.main()\n",
    # The text has the change of the user's branch and the agent's line.
    "notes.md": "# calc\n\nIt adds, carefully.\nIt multiplies.\n",
}
AGENT, USER = "agent", "user"
# All versions of each file after its first read, in order: kind and author.
STORY = {
    "calc.py": [("modified", USER), ("modified", AGENT), ("modified", AGENT)],
    "test_calc.py": [("modified", AGENT), ("modified", USER)],
    "notes.md": [("modified", USER), ("modified", AGENT)],
}
# The files whose changes are reported to the agent, once each.
NOTICED = ["calc.py", "notes.md", "test_calc.py"]
SESSION = "agent-task"


def git(world: World, *args: str) -> None:
    identity = ["-c", "user.name=user", "-c", "user.email=user@example.org"]
    subprocess.run(["git", *identity, *args], cwd=world.root, env=world.environ, check=True, stdout=subprocess.DEVNULL)


def repository() -> World:
    """Creates the repository, on its main branch. Another branch has other
    notes."""
    world = World(FILES)
    git(world, "init", "--quiet", "--initial-branch=main")
    git(world, "add", ".")
    git(world, "commit", "--quiet", "--message=begin")
    git(world, "checkout", "--quiet", "-b", "careful")
    world.write("notes.md", "# calc\n\nIt adds, carefully.\n")
    git(world, "commit", "--quiet", "--all", "--message=careful")
    git(world, "checkout", "--quiet", "main")
    return world


class User(threading.Thread):
    """The user. Acts when the agent is about to take a certain step, between
    its read and its write."""

    def __init__(self, world: World) -> None:
        super().__init__(name="user", daemon=True)
        self.world = world
        self.moments: "queue.Queue[Any]" = queue.Queue()
        self.acts: Dict[str, Callable[[], None]] = {
            "before the first edit": self.save,
            "before the notes": self.checkout,
            "after the tests": self.format,
        }

    def run(self) -> None:
        while True:
            moment, done = self.moments.get()
            if moment is None:
                return
            try:
                self.acts[moment]()
            finally:
                done.set()

    def at(self, moment: str) -> None:
        """Lets the user act at a moment, in the user's own thread, and waits
        for it."""
        done = threading.Event()
        self.moments.put((moment, done))
        assert done.wait(PATIENCE), moment

    def save(self) -> None:
        text = self.world.text("calc.py")
        beside = self.world.path(".calc.py.swp")
        beside.write_text("# Keep this header: the user's.\n" + text)
        beside.replace(self.world.path("calc.py"))

    def checkout(self) -> None:
        git(self.world, "checkout", "--quiet", "careful")

    def format(self) -> None:
        with open(self.world.path("test_calc.py"), "a", encoding="utf-8") as file:
            file.write("\n\nif __name__ == \"__main__\":\n    unittest.main()\n")


def model(told: List[Tuple[str, Result]], user: User) -> Model:
    """A scripted model: reads, edits, and reads again if an edit is
    refused."""

    def take(tool: str, **args: str) -> Model:
        result = yield Step(tool, args)
        told.append((tool, result))
        return result.text

    def edit(path: str, old: str, new: str) -> Model:
        while True:
            yield from take("edit_file", path=path, old=old, new=new)
            if not told[-1][1].refused:
                return ""
            yield from take("read_file", path=path)

    found = yield from take("grep", pattern="def add")
    assert "calc.py" in found, found
    yield from take("read_file", path="calc.py")
    user.at("before the first edit")
    yield from edit("calc.py", "    return a+b\n", "    return a+b\n\n\ndef multiply(a, b):\n    return a * b\n")
    yield from take("bash", command="sed -i 's/a+b/a + b/' calc.py")
    yield from take("read_file", path="test_calc.py")
    yield from take("write_file", path="test_calc.py", text=TESTS)
    yield from take("read_file", path="notes.md")
    user.at("before the notes")
    yield from edit("notes.md", "carefully.\n", "carefully.\nIt multiplies.\n")
    tested = yield from take("bash", command="python3 -m unittest -q")
    assert tested.endswith("[exit code 0]"), tested
    user.at("after the tests")
    yield from take("bash", command="true")
    return "done"


def play(world: World, backend: Backend) -> List[Tuple[str, Result]]:
    """Runs the task. Returns the tools' results, as the model received
    them."""
    told: List[Tuple[str, Result]] = []
    user = User(world)
    user.start()
    try:
        assert run(model(told, user), backend) == "done"
    finally:
        user.moments.put((None, None))
        user.join()
    return told


def story(client: touchmark_client.Client, path: str) -> List[Tuple[str, str]]:
    """Returns a file's versions, oldest first, without the baseline, as kind
    and author. An amendment replaces its version."""
    versions = client.file_history(path)["versions"]
    amended = {version["amends"]: version for version in versions if version.get("amends")}
    told: List[Tuple[str, str]] = []
    for version in reversed(versions):
        if version.get("amends") or version["evidence"] == "gap":
            continue
        last = amended.get(version["clock"], version)
        kind, author = last["kind"], last["author"]["kind"]
        if kind == "created" and told and told[-1] == ("deleted", author):
            # git removes a file before it creates the other branch's. On a busy
            # machine both are recorded (ATTR-12).
            told.pop()
            kind = "modified"
        told.append((kind, author))
    return told
