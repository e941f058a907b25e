"""The blocks of a document, and what is done with each. What stands in the fence's first line says how it is taken:

``sh``       commands, run by bash in the document's folder; none may fail
``console``  commands behind ``$``, each with what it prints; ``...`` stands for anything, a last line ``[N]`` for its exit code
``python``   executed, after the blocks before it
``usage``    how a command is called: what it names must be an option or a verb
``text``     a picture, a grammar, an output: no commands

A block of another language is a file, whose name a comment in front of it says. Comments of these kinds, each right in front
of a block, change what is done with it:

``<!-- file: NAME -->``         the block is written to this file
``<!-- needs: NAME, ... -->``   it runs where these are, else its test is skipped
``<!-- not run: REASON -->``    it is not run
``<!-- fails -->``              (``sh``, ``python``) it ends with an error

``<!-- LANGUAGE`` and lines up to ``-->`` are a block that readers do not see.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import click
from markdown_it import MarkdownIt

from ptxemu.cli import cli
from tests.support.places import DOCS, ROOT, SAMPLES, TESTS
from tests.support.warm_commands import END

SECONDS = 300  # that one block may take
LANGUAGES = ("sh", "console", "python", "usage", "text")
PROGRAMS = ("nvcc", "clang", "cc", "julia", "rustc")
MODULES = ("torch", "triton", "numba", "IPython", "dask", "PIL")
WISHES = {"network": "PTXEMU_TEST_NETWORK"}
"""What nobody can look for, and the variables by which it is granted."""

DIRECTIVE = re.compile(r"<!-- (file|needs|not run|fails)(?:: (.*?))? -->\s*")
HIDDEN = re.compile(r"<!-- (\w+)\n(.*?)^-->\s*", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\s*(?:\$ |ptxemu |python |pip |make |import |from \w+ import )", re.MULTILINE)


@dataclass
class Block:
    """A block, with the first line of its text in the document."""

    page: Path
    line: int
    language: str
    text: str
    directives: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def lacks(self) -> list[str]:
        """What it needs and the machine does not have."""
        return [name for name in map(str.strip, self.directives.get("needs", "").split(",")) if name and not _is_there(name)]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, those that readers do not see among them."""
    found: list[Block] = []
    directives: dict[str, str] = {}
    for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        line = (token.map or [0])[0]
        if token.type == "html_block" and (hidden := HIDDEN.fullmatch(token.content)):
            found.append(Block(page, line + 2, hidden[1], hidden[2], directives))
        elif token.type == "html_block" and DIRECTIVE.match(token.content):
            directives = {**directives, **_directives(token.content)}
            continue
        elif token.type == "fence":
            found.append(Block(page, line + 2, token.info.partition(" ")[0], token.content, directives))
        elif token.type == "code_block":
            found.append(Block(page, line + 1, "", token.content))
        directives = {}
    return found


def _directives(text: str) -> dict[str, str]:
    assert DIRECTIVE.sub("", text) == "", text
    return {name: value or "" for name, value in DIRECTIVE.findall(text)}


def _is_there(name: str) -> bool:
    if name in WISHES:
        return bool(os.environ.get(WISHES[name]))
    if name in PROGRAMS:
        return shutil.which(name) is not None
    assert name in MODULES, f"{name} is not a thing that a block can need"
    return importlib.util.find_spec(name) is not None


class Reader:
    """One who follows a page from its start, in a folder of its own."""

    def __init__(self, folder: Path, path: str) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PATH": path, "COLUMNS": "100"}
        self._session: subprocess.Popen[str] | None = None
        for place in (SAMPLES, DOCS, TESTS):
            (folder / place.name).symlink_to(place)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._session is not None:
            self._session.communicate()

    def follow_all(self, found: Iterable[Block]) -> None:
        for block in found:
            self.follow(block)

    def follow(self, block: Block) -> None:
        """Do what a block says; raises what goes wrong."""
        if block.directives.get("not run") or block.lacks:
            return
        if name := block.directives.get("file"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(block.text, encoding="utf-8")
            return
        assert block.language in LANGUAGES, f"{block.place}: a block of {block.language or 'nothing'} needs a file's name"
        fails = "fails" in block.directives
        try:
            getattr(self, f"_{block.language}")(block)
        except Exception as error:
            if not fails:
                error.add_note(f"{block.place}\n{block.text}")
                raise
        else:
            assert not fails, f"{block.place} does not fail"

    def _bash(self, script: str, place: str) -> tuple[int, str]:
        command = ["bash", "-euo", "pipefail", "-c", script]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(command, cwd=self.folder, env=self.environment, timeout=SECONDS, text=True, **streams)  # type: ignore[call-overload]
        return done.returncode, done.stdout

    def _sh(self, block: Block) -> None:
        code, printed = self._bash(block.text, block.place)
        assert code == 0, f"exit code {code}:\n{printed}"

    def _console(self, block: Block) -> None:
        for command, expected in _commands(block.text):
            code, printed = self._bash(command, block.place)
            end = re.search(r"^\[(\d+)\]\n\Z", expected, re.MULTILINE)
            wanted = expected[: end.start()] if end else expected
            assert code == (int(end[1]) if end else 0), f"exit code {code} of {command}:\n{printed}"
            pattern = ".*?".join(map(re.escape, _trimmed(wanted).split("...")))
            assert re.fullmatch(pattern, _trimmed(printed), re.DOTALL), f"{command} prints\n{printed}"

    def _python(self, block: Block) -> None:
        if self._session is None:
            self._session = subprocess.Popen(
                ["python-session"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=self.folder,
                env=self.environment,
            )
        assert self._session.stdin is not None and self._session.stdout is not None
        self._session.stdin.write(json.dumps(["\n" * (block.line - 1) + block.text, str(block.page)]) + "\n")
        self._session.stdin.flush()
        answer = next((line for line in self._session.stdout if line.startswith(END)), None)
        assert answer is not None, "the process has died"
        assert not (problem := json.loads(answer[len(END) :])), problem

    def _usage(self, block: Block) -> None:
        for verbs, rest in re.findall(r"^ptxemu ([a-z|]+)((?:.|\n )*)", block.text, re.MULTILINE):
            for verb in verbs.split("|"):
                command = cli.get_command(click.Context(cli), verb)
                assert command is not None, verb
                options = {name for item in command.params for name in (*item.opts, *item.secondary_opts)}
                assert not (missing := set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", rest)) - options), f"{verb}: {missing}"

    def _text(self, block: Block) -> None:
        assert not COMMAND.search(block.text), "commands stand in blocks that run"


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console, each with what is printed."""
    assert text.startswith("$ "), "a console begins with a command"
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        end = next(number for number, line in enumerate(lines, 1) if not line.endswith("\\\n"))
        yield "".join(lines[:end]), "".join(lines[end:])


def _trimmed(text: str) -> str:
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).strip("\n")
