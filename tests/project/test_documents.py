"""Documents are verbatim: every block of README.md and docs/ runs, in the order of its page (``tests/support/documents.py``)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import Block, Reader, blocks
from tests.support.places import DOCS, ROOT
from tests.support.warm_commands import WarmCommands

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
MAX_NOT_RUN = 12
"""Blocks that cannot run in a test, for the reasons that they name: set-up of an environment, tests of tests."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A search path with a ``ptxemu`` that starts at once."""
    with WarmCommands(tmp_path_factory.mktemp("bin")) as warm:
        yield os.pathsep.join([str(warm.folder), str(Path(sys.executable).parent), os.environ["PATH"]])


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_blocks_run(page: Path, path: str, tmp_path: Path) -> None:
    with Reader(tmp_path, path) as reader:
        reader.follow_all(blocks(page))


@pytest.mark.parametrize(
    "block", [block for page in PAGES for block in blocks(page) if "needs" in block.directives], ids=lambda block: block.place
)
def test_blocks_have_what_they_need(block: Block) -> None:
    """Where something is missing, a skipped test says so."""
    if block.lacks:
        pytest.skip(f"needs {', '.join(block.lacks)}")


def test_few_blocks_are_not_run() -> None:
    left = [block for page in PAGES for block in blocks(page) if "not run" in block.directives]
    assert len(left) <= MAX_NOT_RUN, [block.place for block in left]
    assert all(len(block.directives["not run"]) > 10 for block in left), "each has a reason"


def page_of(tmp_path: Path, text: str) -> list[Block]:
    page = ROOT / "docs" / "made-up.md"
    shown = tmp_path / "page.md"
    shown.write_text(text, encoding="utf-8")
    return [Block(page, block.line, block.language, block.text, block.directives) for block in blocks(shown)]


@pytest.mark.parametrize(
    "text",
    [
        "```sh\nfalse\ntrue\n```",
        "```sh\nptxemu run no-such-file.ptx\n```",
        "```console\n$ echo one\ntwo\n```",
        "```console\n$ exit 3\n[2]\n```",
        "```python\nassert 1 + 1 == 3\n```",
        "```usage\nptxemu run FILE --no-such-option\n```",
        "```usage\nptxemu no-such-verb\n```",
        "```text\nptxemu run kernel.ptx\n```",
        "```toml\n[args]\n```",
        "    indented = 1\n",
        "```\nplain\n```",
        "<!-- fails -->\n```sh\ntrue\n```",
        "<!-- needs: a miracle -->\n```sh\ntrue\n```",
        "<!-- sh\nfalse\n-->",
    ],
    ids=lambda text: text.replace("\n", " ")[:40],
)
def test_what_is_wrong_is_found(text: str, path: str, tmp_path: Path) -> None:
    found = page_of(tmp_path, text)
    with Reader(tmp_path, path) as reader, pytest.raises(AssertionError):
        reader.follow_all(found)


def test_what_is_right_runs(path: str, tmp_path: Path) -> None:
    text = """
<!-- file: greeting.txt -->
```ini
hello
```

```console
$ cat greeting.txt && \\
  echo "to all the world"
hello
to ... world
$ ls no-such-file
ls: ...
[2]
```

<!-- python
given = 5
-->

1. in a list:
   ```python
   assert given == 5
   ```

<!-- fails -->
```python
given / 0
```

```usage
ptxemu run FILE [--grid X] [--block X]
           [--entry NAME]
```
"""
    found = page_of(tmp_path, text)
    with Reader(tmp_path, path) as reader:
        reader.follow_all(found)
    assert [block.language for block in found] == ["ini", "console", "python", "python", "python", "usage"]
