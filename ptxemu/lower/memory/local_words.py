"""Loads and stores of local memory whose words of all lanes lie side by side (:mod:`ptxemu.analysis.interleaving`).

The word at an offset in the windows of all lanes begins at 32 times that offset; lane follows lane. Addresses are offsets in a
window all the same, and tested as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.access import Access, assure, vector_addresses, verify
from ptxemu.lower.core.context import MASK, Context
from ptxemu.lower.core.gather import gather, scatter
from ptxemu.lower.core.literals import vector_literal
from ptxemu.lower.memory import consecutive
from ptxemu.lower.memory.patterns import full


def serves(ctx: Context, found: Access) -> bool:
    return bool(ctx.local_word) and found.space == "local"


def load(ctx: Context, found: Access, kind: ScalarType, count: int) -> list[str]:
    """``count`` elements of every lane that is on, as integers."""
    read = _together(ctx, found) if _is_shared(found) else _apart(ctx, found)
    word, bits = _word(ctx), f"i{kind.bits}"
    words = [read(offset) for offset in range(0, kind.bytes * count, ctx.local_word)]
    return consecutive.merged(ctx, words, word, bits)


def store(ctx: Context, found: Access, kind: ScalarType, values: Sequence[str]) -> None:
    """Integers of every lane that is on."""
    words = consecutive.split(ctx, values, f"i{kind.bits}", _word(ctx))
    write = _to_all(ctx, found) if _is_shared(found) else _to_each(ctx, found)
    for number, word in enumerate(words):
        write(number * ctx.local_word, word)


def _word(ctx: Context) -> str:
    return f"i{8 * ctx.local_word}"


def _is_shared(found: Access) -> bool:
    """Whether all lanes have one offset."""
    return found.shape is not None and found.shape.uniform


# ---------------------------------------------------------------- one offset


def _place(ctx: Context, found: Access) -> str:
    """A pointer to where the words of an access begin, which is in range."""
    if not found.safe:
        assure(ctx, found)
    start = ctx.scalar.bin("mul", "i64", found.base, str(LANES))
    return ctx.inst(f"inttoptr i64 {ctx.scalar.bin('add', 'i64', ctx.field('local_base'), start)} to ptr")


def _word_at(ctx: Context, place: str, offset: int) -> str:
    return ctx.inst(f"getelementptr i8, ptr {place}, i64 {offset * LANES}") if offset else place


def _together(ctx: Context, found: Access) -> Callable[[int], str]:
    place, vector = _place(ctx, found), f"<{LANES} x {_word(ctx)}>"
    return lambda offset: ctx.inst(f"load {vector}, ptr {_word_at(ctx, place, offset)}, align {ctx.local_word}")


def _to_all(ctx: Context, found: Access) -> Callable[[int, str], None]:
    """Words of lanes that are off are written as they are: nobody else has the memory."""
    place, vector = _place(ctx, found), f"<{LANES} x {_word(ctx)}>"

    def write(offset: int, word: str) -> None:
        at = _word_at(ctx, place, offset)

        def kept() -> list[str]:
            old = ctx.inst(f"load {vector}, ptr {at}, align {ctx.local_word}")
            return [ctx.inst(f"select {MASK} {found.mask}, {vector} {word}, {vector} {old}")]

        (value,) = ctx.when(full(ctx, found.mask), lambda: [word], kept, [vector], likely=True)
        ctx.stmt(f"store {vector} {value}, ptr {at}, align {ctx.local_word}")

    return write


# ---------------------------------------------------------------- an offset of each lane


def _places(ctx: Context, found: Access) -> str:
    """Of all lanes, i64, from the start of the warp's memory; those that are on are in range."""
    addresses = vector_addresses(ctx, found)
    if not found.safe:
        verify(ctx, found, addresses)
    start = ctx.vector.bin("mul", "i64", addresses, ctx.vector.int(64, LANES))
    return ctx.vector.bin("add", "i64", start, vector_literal("i64", range(0, LANES * ctx.local_word, ctx.local_word)))


def _apart(ctx: Context, found: Access) -> Callable[[int], str]:
    places, start = _places(ctx, found), ctx.field("local_base")
    return lambda offset: gather(ctx, _word(ctx), places, offset * LANES, found.mask, start=start)


def _to_each(ctx: Context, found: Access) -> Callable[[int, str], None]:
    places, start = _places(ctx, found), ctx.field("local_base")
    return lambda offset, word: scatter(ctx, _word(ctx), places, offset * LANES, word, found.mask, start=start)
