"""What an instruction does and is called stands in the table: elsewhere, code asks the op.

Counted are, in each file, the string literals that equal an opcode or the name of a lowering, outside the table, the
dialects, registrations (``@elementwise("x")``, ``@effect``, ``@method``, ``@pattern``, ``@predicate``, ``@estimate``,
``@linear``, ``@ranged``, ``@narrowed``, ``internal_row``) and the names of LLVM instructions in calls of an emitter.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache

from ptxemu.isa import rows
from ptxemu.lower.core.registry import lowerings
from tests.support.places import PACKAGE

TABLES = {"isa", "dialects"}
REGISTRATIONS = {
    "elementwise", "effect", "method", "pattern", "predicate", "estimate", "linear", "ranged", "narrowed", "internal_row",
}  # fmt: skip
EMITTERS = {"bin", "icmp", "fcmp", "cast", "intrinsic", "select"}

MOST = 40
ALLOWED = {
    "analysis/assumed.py": ("max min rem", "keep an index within bounds"),
    "analysis/comparisons.py": ("not", "of predicates: what follows if it has a value"),
    "analysis/runs.py": ("selp", "keeps one, too"),
    "analysis/unrolled.py": ("add.int", "numbers go on by sums"),
    "analysis/written.py": ("mad mov.vector mul shl shr", "products are no pointers, sums and vectors hold some"),
    "check/body.py": ("ld mad st", "makes copies of .reg parameters; a mad of early versions has no rounding"),
    "check/flow.py": ("bra brx call ret", "control flow has a syntax of its own"),
    "check/subscripts.py": ("add mad mov", "makes the ops of an array subscript"),
    "interpreter/control.py": ("bra", "has a step of its own where it is guarded"),
    "interpreter/surfaces.py": ("suld sured sust", "methods of several opcodes tell them apart"),
    "interpreter/translate.py": ("ret", "ends a body that has none"),
    "lower/values/approx.py": ("cos rcp rsqrt sqrt", "lowerings of several opcodes tell them apart"),
    "lower/values/float.py": ("fma mad", "lowerings of several opcodes tell them apart"),
    "lower/functions/steps.py": ("lop3 prmt", "their lowerings look at immediate operands"),
    "lower/values/video.py": ("vadd vmax vmin vshr vsub", "lowerings of several opcodes tell them apart"),
}
"""Where opcodes stand outside the table, and why."""

HOMONYMS = {
    "analysis/parameters.py": ("max min", "operations of atom"),
    "analysis/spinning.py": ("add mbarrier", "an operation of atom; an object in memory"),
    "check/body.py": ("barrier", "a remark"),
    "check/declarations.py": ("tex", "a state space"),
    "check/matching.py": ("hint neg", "modifiers"),
    "check/placement.py": ("tex", "a state space"),
    "cli/results.py": ("max min", "statistics"),
    "cli/verbs/test.py": ("red", "a colour"),
    "device/advice.py": ("trap", "a kind of fault"),
    "interpreter/asynchronous.py": ("copy mbarrier", "constants of the runtime"),
    "interpreter/atomics.py": ("atom", "a constant of the runtime"),
    "interpreter/dialects/ctm.py": ("red", "a colour"),
    "interpreter/dialects/sass.py": ("red", "a constant of the runtime"),
    "interpreter/evaluator.py": ("abs add and copysign fma mul or shl sqrt sub xor", "instructions and intrinsics of LLVM"),
    "interpreter/image.py": ("tcgen05 video", "modules"),
    "interpreter/matrices.py": ("mma wgmma wmma", "constants of the runtime"),
    "interpreter/surfaces.py": ("trap", "a clamp mode"),
    "interpreter/sync.py": ("and popc", "modifiers"),
    "interpreter/tcgen05.py": ("red tmem_copy tmem_mma", "a modifier; constants of the runtime"),
    "interpreter/warp.py": ("abs add and max min or xor", "modifiers"),
    "irtext/words.py": ("barrier", "of the text of the IR"),
    "lower/values/bitfield.py": ("shl", "an instruction of LLVM"),
    "lower/core/emit.py": ("abs copysign fma sqrt", "intrinsics of LLVM"),
    "lower/values/float.py": ("abs add div fma mul neg rcp sqrt sub", "operations of LLVM and of the runtime"),
    "lower/values/half.py": ("ex2 fma mul tanh", "operations of LLVM and functions of MUFU"),
    "lower/values/mufu.py": ("cos ex2 lg2 rcp rsqrt sin sqrt tanh", "functions of MUFU"),
    "lower/values/mufu_unit.py": ("cos ex2 lg2 rcp rsqrt sin sqrt tanh", "functions of MUFU"),
    "lower/values/logic.py": ("or shl", "instructions of LLVM"),
    "lower/core/products.py": ("add", "an instruction of LLVM"),
    "lower/core/registry.py": ("copy mbarrier tcgen05 video", "modules"),
    "lower/memory/surfaces.py": ("trap", "a clamp mode"),
    "lower/control/sync.py": ("and or popc red", "modifiers"),
    "lower/memory/texel_lanes.py": ("trap", "a clamp mode"),
    "lower/memory/updates.py": ("add", "an operation on memory"),
    "lower/memory/tcgen05.py": ("red", "a modifier"),
    "lower/values/video.py": ("add", "a modifier"),
    "lower/control/warp.py": ("abs add and max min or xor", "modifiers and instructions of LLVM"),
    "profiler/counters.py": ("atom ld red st", "parts of names of metrics"),
    "profiler/metrics.py": ("atom ld red st", "parts of names of metrics"),
    "pytest_plugin.py": ("call", "a phase of a test"),
    "ir/operations.py": ("add and max min or xor", "operations on memory"),
    "passes/build.py": ("exit", "a block"),
    "passes/internal.py": ("_barrier_leave", "the name of a row that is stated there"),
    "passes/loops.py": ("exit", "a block"),
    "syntax/expressions.py": ("call", "a production of the grammar"),
    "syntax/words.py": ("tex", "a state space"),
}
"""Where the same words mean something else."""


def names() -> set[str]:
    return set(rows()) | lowerings() - {"unsupported"}


def literals(tree: ast.Module) -> Iterator[str]:
    """String constants but for documentation, registrations and arguments of emitters."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            if name in REGISTRATIONS | EMITTERS:
                skipped |= {id(inner) for argument in arguments for inner in ast.walk(argument)}
        elif isinstance(node, ast.Expr):
            skipped.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


@cache
def found() -> dict[str, set[str]]:
    """The opcodes and names of lowerings among the literals of each file."""
    known, result = names(), {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        words = set(literals(ast.parse(path.read_text(encoding="utf-8")))) & known
        if words and place.parts[0] not in TABLES and place.name != "_tables.py":
            result[place.as_posix()] = words
    return result


def listed(place: str) -> set[str]:
    return {word for table in (ALLOWED, HOMONYMS) if place in table for word in table[place][0].split()}


def test_opcodes_stand_in_the_table() -> None:
    assert {place: extra for place, words in found().items() if (extra := words - listed(place))} == {}


def test_no_exception_is_kept_without_need() -> None:
    words = found()
    listed = (*ALLOWED.items(), *HOMONYMS.items())
    assert [place for place, (allowed, _) in listed if not set(allowed.split()) <= words.get(place, set())] == []


def test_few_opcodes_stand_elsewhere() -> None:
    assert sum(len(words.split()) for words, _ in ALLOWED.values()) < MOST
    assert all(reason for _, reason in ALLOWED.values())


def test_the_counter_sees_comparisons_and_sets() -> None:
    text = '''
"""ld"""
@effect("st")
def lower(e):
    """atom"""
    e.bin("add", "i32", a, b)
    if op.opcode == "ld" or op.row.lower in {"atom", "st"}:
        return f"red {x}"
'''
    assert Counter(literals(ast.parse(text))) == {"ld": 1, "atom": 1, "st": 1, "red ": 1}
