"""The parser's fast path gives what the grammar gives: the same tree, positions and diagnostics, on any text."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxemu.syntax import ast, scanner, templates
from tests.front.syntax_helpers import CORPUS, HEADER, in_kernel, nodes, parse_text

DEBUG = HEADER + (
    ".entry k(.param .u64 .ptr .global .align 16 a, .param .u32 b) {\n.reg .b32 %r<9>;\n"
    + "".join(
        f".loc 1 {line} 3\nadd.s32 %r1, %r2, -{line};\n"
        f".loc 1 {line} 9, function_name $f, inlined_at 1 {line} 2\n@!%p{line} bra L{line};\nL{line}:\n"
        for line in range(1, 9)
    )
    + "ret;\n}\n.section .debug_str\n{\n$f: .b8 1, 2\n}\n"
)


def both(text: str) -> tuple[ast.Module, list[str]]:
    """The result of the fast path, once it knows the shapes of ``text``, after comparison with the grammar's."""
    slow = parse_text(text, fast=False)
    for _ in range(scanner.LEARN_AFTER + 1):
        fast = parse_text(text)
        assert fast[1] == slow[1]
        assert slow[1] or fast[0] == slow[0]
    return slow


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_corpus(path: Path) -> None:
    module, errors = both(path.read_text())
    assert errors == []
    assert module.items


def test_the_fast_path_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "_templates", {})  # whatever other tests have taught
    monkeypatch.setattr(scanner, "_sightings", {})
    text = in_kernel("add.u32 %r1, %r2, 5;\nst.u32 [%r1+4], %r2;")
    for _ in range(scanner.LEARN_AFTER):
        parse_text(text)
    monkeypatch.setattr(scanner.Scanner, "learn", lambda *_: pytest.fail("the grammar read a known statement"))
    assert parse_text(text.replace("%r2", "other").replace("5", "0x77"))[1] == []


def test_debug_data_and_labels() -> None:
    module, errors = both(DEBUG)
    assert errors == []
    assert len(module.locs) == 16
    [function] = module.items
    assert isinstance(function, ast.Function) and function.body
    locs = [node.loc for node in function.body.body if isinstance(node, ast.Instruction)]
    assert locs == [*range(1, 17), 16]


def test_windows_of_a_large_module() -> None:
    body = "".join(f"L{n}: add.u32 %r{n}, %r{n + 1}, {n};\n{{ mov.b64 {{%a, %b}}, %rd{n}; }}\n" for n in range(5000))
    text = in_kernel(body)
    assert len(text) > 3 * scanner.WINDOW
    module, errors = both(text)
    assert errors == []
    assert sum(isinstance(node, ast.Instruction) for node in nodes(module.items)) == 10_000


@pytest.mark.parametrize(
    ("known", "other"),
    [
        ("ld.u32 %a, [%b+4];", "ld.u32 %a, [%b-4];"),
        ("ld.u32 %a, [%b+-0];", "ld.u32 %a, [%b+-4];"),
        ("mov.u32 %a, -0;", "mov.u32 %a, -5;"),
        ("mov.u32 %a, +0;", "mov.u32 %a, +5;"),
        ("mov.u32 %a, ~0;", "mov.u32 %a, ~5;"),
        ("mov.u32 %a, !0;", "mov.u32 %a, !1;"),
        ("mov.u32 %a, -1U;", "mov.u32 %a, -2U;"),
        ("mov.u32 %a, -1;", "mov.u32 %a, -0x8000000000000001;"),
        ("mov.u32 %a, 4*2;", "mov.u32 %a, 3*3;"),
        ("mov.u32 %a, 1.5e-3;", "mov.u32 %a, 1.5e-7;"),
        ("mov.u32 %a, WARP_SZ;", "mov.u32 %a, OTHER;"),
        ("mov.u32 %a, 0f00000000;", "mov.u32 %a, 0f3f80;"),
        ("mov.u32 %a, 7;", "mov.u32 %a, 08;"),
        ("mov.u32 %a, _;", "mov.u32 %a, _b;"),
        ("mov.u32 %a, %tid.x;", "mov.u32 %a, %tid.q;"),
        ("mov.u32 %a, t[1];", "mov.u32 %a, t[2];"),
        (".shared .align 4 .b8 x[4];", ".shared .align 8 .b8 x[16];"),
        (".shared .b8 x[-0];", ".shared .b8 x[-4];"),
        (".reg .b32 %r<4>;", ".reg .b32 %r.x<4>;"),
        ("@%p ret;", "@%p.x ret;"),
        ("A: ret;", "A.x: ret;"),
        ("foo %a;", "bar %a;"),
        ("ret;", "ret ;"),
        ("add.s32 %a, %b, 1;", "ld.volatile.shared::cta.v2.u32 %a, %b, 1;"),
        ("add.s32 %a, %b;", "add .s32 %a, %b;"),
        ("bra.uni A;", "call.uni A;"),
        ("mov.s32 (%a), b;", "call.uni (%a), b;"),
        ("mov.b32 %a, foo.x;", "mov.b32 %a, foo.other;"),
        ("mov.b32 %a, foo.x;", "mov.b32 %a, foo.x.b0;"),
        ("@foo.x add.s32 %a, %b;", "@foo.reg add.s32 %a, %b;"),
        ("mad.lo.s32 %a;", "mad..s32 %a;"),
        ("fence.proxy.async;", "fence.proxy.alias;"),
        ("mad.lo.s32 %a;", "mad.reg.s32 %a;"),
        ("mad.lo.s32 %a;", "mad.loc 1 2 3;"),
        ("mov.u32 %a, %b;", "mov.u32 %a, %b\u00a0;"),
        ("mov.u32 %a, %b;", "\u2028mov.u32 %a, %b;"),
        ("mov.u32 %a, %b;", "mov.u32 %a, \x01;"),
        ("A: ret;", "A: .branchtargets B;"),
        ("add.u32 %a, %b, 1;", "add.u32 %a, %b, 1; add.u32 %a,"),
    ],
)
def test_texts_of_like_shape(known: str, other: str) -> None:
    both(in_kernel(known))
    both(in_kernel(other))
    both(in_kernel(other + "\n" + known + "\n" + other))


def test_what_is_written_into_a_template_is_not_text_of_the_source() -> None:
    """A template is Python source; a name that looks like code stays data."""
    module, errors = both(in_kernel("mov.u32 %__import__, __import__;"))
    assert errors == []
    [instruction] = module.items[0].body.body  # type: ignore[union-attr]
    assert [item.text for item in instruction.operands] == ["%__import__", "__import__"]  # type: ignore[union-attr]


def test_a_template_is_refused_where_a_part_does_not_come_from_one_leaf() -> None:
    text = in_kernel("mov.u32 %a, 1+1;")
    [instruction] = parse_text(text, fast=False)[0].items[0].body.body  # type: ignore[union-attr]
    assert isinstance(instruction, ast.Instruction)
    words = [(m[0], m.start(), m.end()) for m in re.finditer(r"[%\w.]+", text) if instruction.pos <= m.start() < instruction.end]
    texts, starts, ends = map(list, zip(*words, strict=True))
    leaves = templates.Leaves(text, texts, starts, ends, {0, 1, 2, 3}, {0})
    assert templates.compile_template(instruction, leaves) is None


SMALL = [path.read_text() for path in CORPUS if path.stat().st_size < 4000]


def test_truncated_anywhere() -> None:
    text = DEBUG + '.global .u8 x[4] = {1, 2, 3, 4}; .pragma "a";\n'
    for end in range(len(text)):
        both(text[:end])


@given(st.randoms(use_true_random=False), st.sampled_from(SMALL))
def test_mutations(rng: random.Random, text: str) -> None:
    pieces = [*";:,{}[]()<>+-*/%!~|&^=@?\"'\0\\#é_", "\n", "/*", "*/", "//", ".entry", ".visible", ".section", "0x", "1e", ".v4"]
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(text))
        other = rng.randrange(len(text))
        inserted = rng.choice([rng.choice(pieces), text[other : other + rng.randrange(30)], ""])
        text = text[:at] + inserted + text[at + rng.choice([0, 0, 1, 7]) :]
    both(text)
