"""Sizes and addresses that programs give are added, multiplied and rounded up in one place, which cannot wrap."""

from __future__ import annotations

import re

import pytest

from tests.support.places import CSRC

SOURCES = sorted(CSRC.rglob("*.[ch]"))
SIZE = r"[\w>.\-\[\]]*(?:size|bytes|length|extent|stride)\w*"
FORBIDDEN = {
    "a sum that is compared with a bound: use pe_within": rf"\w\)? \+ {SIZE}\)? (?:<=?|>=?) ",
    "a bound that is a sum: use pe_within or pe_sum": rf"(?:<=?|>=?) [\w>.\-]*(?:base|address|start|offset|first) \+ {SIZE}",
    "a product of a size that is passed on: use pe_product": rf"(?:take|alloc|commit|charge)\w*\([^;]*{SIZE} \* ",
    "rounding up by hand: use pe_round_up": r"\+ [^;&|]*(?:- 1|63|255|15)\) & ~",
}


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name != "checked.h"], ids=lambda path: path.name)
def test_sums_that_can_wrap(path):
    code = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), path.read_text(), flags=re.S)
    found = [
        f"{path.name}:{number}: {what}: {line.strip()}"
        for number, line in enumerate(code.splitlines(), 1)
        for what, pattern in FORBIDDEN.items()
        if re.search(pattern, line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "if (p->cursor + size > p->args_end) return;",
        "return s.least >= base + size;",
        "take_window(launch, local_bytes * 32, &address);",
        "return (value + unit - 1) & ~(unit - 1);",
        "uint64_t extent = (w->shared_size + 255) & ~255ull;",
    ],
)
def test_what_is_looked_for(line):
    assert any(re.search(pattern, line) for pattern in FORBIDDEN.values())
