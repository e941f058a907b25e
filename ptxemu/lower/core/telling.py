"""What observers are told of accesses to memory and of what orders them, in code that is compiled for that (ir/observed.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from ptxemu._runtime import ffi, lib
from ptxemu.analysis.runs import Runs, runs_of
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.observed import leaves_stamps, tells_accesses, tells_blanks, tells_order, tells_strays, tells_texels, tells_waits
from ptxemu.ir.ops import Op, Reg
from ptxemu.ir.strength import RELEASING, strength
from ptxemu.lower.core import blanks, stamps
from ptxemu.lower.core.access import (
    CONSTANT,
    WINDOWS,
    Access,
    Range,
    failing,
    is_half,
    note_position,
    pattern_test,
    stored_addresses,
)
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.families import may_be_claimed, place_of
from ptxemu.lower.core.reach import is_near
from ptxemu.lower.core.runs import expected, groups_within, rows_within
from ptxemu.lower.core.shared_log import Listing, listing_of_all
from ptxemu.lower.core.site import Value, site_literal, site_type

PARTS_OF_WORDS, WHOLE_WORDS = (1, 2), (4, 8, 16)  # sizes of elements that observers are told of together
RANGE_BYTES = ffi.sizeof("pe_range")

PATTERN_SITE = "pe_pattern_site"

SCOPES = {"cta": lib.PE_FENCE_CTA, "cluster": lib.PE_FENCE_CLUSTER}

Values: TypeAlias = Callable[[], str]
Test: TypeAlias = Callable[[], str]  # an i1
Load: TypeAlias = Callable[[Access, bool], Sequence[str]]


def admit(ctx: Context, found: Access, values: Values = lambda: "null") -> bool:
    """Tell the runtime of an access that is about to happen, in code that is compiled for that: the lanes that go on stay in
    its mask. Where only strays are told, those that go where the instruction went before, and so are allowed, go on.
    ``values`` stores the elements that are going to be stored, one for each lane, and returns their address.
    Whether lanes may be left out, here or where the access is tested."""
    tests = _told_unless(ctx, found)
    if not tests:
        return _tested_by_lanes(ctx, found)
    usual = _unseen(ctx, found, tests)
    (bits,) = ctx.when(usual, lambda: [ctx.bits_of(found.mask)], lambda: [_told(ctx, found, values)], [f"i{LANES}"], likely=True)
    found.mask = ctx.mask_from_bits(bits)
    found.admitted = usual
    return True


def admit_load(ctx: Context, found: Access, load: Load, types: Sequence[str]) -> Sequence[str]:
    """The same of a load, which then happens: ``load`` makes what it gives, and is told whether lanes may be left out. An
    access that need not be told is one that passes the test of its address, too, and need not be tested again."""
    tests = _told_unless(ctx, found)
    if not tests:
        return load(found, _tested_by_lanes(ctx, found))

    def told() -> Sequence[str]:
        return load(replace(found, mask=ctx.mask_from_bits(_told(ctx, found, lambda: "null"))), True)

    return ctx.when(_unseen(ctx, found, tests), lambda: load(replace(found, safe=True), False), told, types, likely=True)


def _told_unless(ctx: Context, found: Access) -> list[Test]:
    """What an access passes that need not be told. No test: it never need be."""
    return _tests(ctx, found) if tells_accesses(ctx.unit.observed) else []


def _tested_by_lanes(ctx: Context, found: Access) -> bool:
    """Whether lanes may be left out of an access that is not told, as the runtime tests them if compiled code does not."""
    return tells_accesses(ctx.unit.observed) and not found.safe


def unseen(ctx: Context, found: Sequence[Access]) -> list[str]:
    """i1 values, all of which are set only if nobody need be told of any of some accesses. Where code leaves stamps, those are
    looked at once, when the access happens alone."""
    looks = leaves_stamps(ctx.unit.observed)
    tested = [(one, tests) for one in found if (tests := _told_unless(ctx, one))]
    return [is_near(ctx, one) or (_passes_listed(ctx, one) if looks else _passes(ctx, tests)) for one, tests in tested]


def _passes_listed(ctx: Context, found: Access) -> str:
    """i1: nobody need be told of an access, without a look at stamps, as it is listed together with others."""
    listed = _listed_together(ctx, found) if _may_be_listed(ctx, found) else None
    if listed is None:
        return "false"
    return _passes(ctx, [*_tests_of_places(ctx, found), lambda: listed])


def _unseen(ctx: Context, found: Access, tests: Sequence[Test]) -> str:
    """i1: nobody need be told of an access, as its memory is sure to be there, or as it passes some tests."""
    near = is_near(ctx, found)
    if near is None:
        return _quiet_or_passes(ctx, found, tests)

    def far() -> list[str]:
        note_position(ctx, found.op, found.space)
        return [_quiet_or_passes(ctx, found, tests)]

    return ctx.when(near, lambda: ["true"], far, ["i1"], likely=True)[0]


def _quiet_or_passes(ctx: Context, found: Access, tests: Sequence[Test]) -> str:
    """i1: an access reads what the launch only reads, or passes some tests."""
    if not (leaves_stamps(ctx.unit.observed) and is_plain_read(found)) or ctx.checking:
        return _passes(ctx, tests)
    quiet = _is_in(ctx, found, _quiet_range(ctx, found.op))
    return ctx.when(quiet, lambda: ["true"], lambda: [_passes(ctx, tests)], ["i1"], likely=True)[0]


def _passes(ctx: Context, tests: Sequence[Test]) -> str:
    """i1."""
    first, *others = tests
    if not others:
        return first()
    return ctx.when(first(), lambda: [_passes(ctx, others)], lambda: ["false"], ["i1"], likely=True)[0]


def _tests(ctx: Context, found: Access) -> list[Test]:
    """What an access passes, one after the other, that need not be told. No test: it never need be."""
    observed = ctx.unit.observed
    tests = _tests_of_places(ctx, found)
    if leaves_stamps(observed) and found.space not in (*CONSTANT, "local"):
        tests.append(_stamped(ctx, found))
    return [_fails] if _fails in tests else tests


def _tests_of_places(ctx: Context, found: Access) -> list[Test]:
    """Those that do not look at stamps."""
    observed = ctx.unit.observed
    known = found.safe and (found.op not in ctx.trusted or found.space in WINDOWS)
    constant = found.space in CONSTANT
    if observed == "all":
        return [] if known and constant else [_fails]
    tests: list[Test] = []
    if tells_blanks(observed) and not constant:
        tests.append(_fails if found.space == "local" else partial(_has_no_blanks, ctx, found))
    elif (tells_strays(observed) and not known) or (tells_waits(observed) and found.space == "shared"):
        tests.append(partial(_is_usual, ctx, found))
    return tests


def _stamped(ctx: Context, found: Access) -> Test:
    """The test of an access by stamps."""
    stamping = _stamping(ctx, found)
    passes = stamping.passes if stamping is not None else _fails
    if not _may_be_listed(ctx, found):
        return passes
    claims = stamping is not None and _may_be_claimed(ctx, found)
    if not claims and found.kind != lib.PE_READ:
        return passes
    together = _listed_together(ctx, found)
    if together is None:
        span = None if found.safe else found.span
        return partial(Listing(ctx, found, _pattern_site(ctx, found), span, claims).passes, passes)
    return lambda: ctx.when(together, lambda: ["true"], lambda: [passes()], ["i1"], likely=True)[0]


def _may_be_listed(ctx: Context, found: Access) -> bool:
    listed = found.space == "shared" and found.kind in (lib.PE_READ, lib.PE_WRITE) and not found.strong and ctx.of_one_place
    return listed and found.size in WHOLE_WORDS and _is_pattern(ctx, found)


def _may_be_claimed(ctx: Context, found: Access) -> bool:
    return ctx.unit.forgets and may_be_claimed(found)


def _listed_together(ctx: Context, found: Access) -> str | None:
    """i1: an access of shared memory is listed with others; None if it is made alone."""
    together = ctx.shared_accesses.together.get(found.op)
    if together is None:
        return None
    if found.op is together.ops[0] and not together.listed:
        all_found = [replace(found, op=op, address=op.access.address) for op in together.ops]
        shifts = [one.address.distance - found.address.distance for one in all_found]
        sites = [{"pos": one.op.pos, **_pattern_fields(ctx, one, shift)} for one, shift in zip(all_found, shifts)]
        kind = site_type(PATTERN_SITE)
        text = ", ".join(f"{kind} {site_literal(PATTERN_SITE, site)}" for site in sites)
        site = ctx.constant(f"[{len(sites)} x {kind}] [{text}]")
        claims = all(_may_be_claimed(ctx, one) for one in all_found)
        together.listed = listing_of_all(ctx, found, together.ops, site, claims).passes(lambda: "false")
    return together.listed or None


def texels_pass(ctx: Context, op: Op, writes: bool, ready: str, pointers: Sequence[str], size: int) -> str:
    """i1: ``ready``, and no texel need be told: of ``size`` bytes, in rows at these addresses, each of as many lanes."""
    observed = ctx.unit.observed
    starts = [ctx.inst(f"ptrtoint ptr {pointer} to i64") for pointer in pointers] if tells_texels(observed) else []
    tests: list[Test] = [lambda: ready]
    if tells_blanks(observed):
        tests.append(lambda: rows_within(ctx, starts, LANES // len(starts) * size, kept_range(ctx, op)))
    if leaves_stamps(observed):
        tests.append(stamps.of_rows(ctx, op, ctx.mask_of(op), writes, starts, size).passes)
    if writes or not leaves_stamps(observed):
        return _passes(ctx, tests)
    quiet = rows_within(ctx, starts, LANES // len(starts) * size, _quiet_range(ctx, op))
    quiet = ctx.scalar.bin("and", "i1", ready, quiet)
    return ctx.when(quiet, lambda: ["true"], lambda: [_passes(ctx, tests)], ["i1"], likely=True)[0]


def _fails() -> str:
    return "false"


def _told(ctx: Context, found: Access, values: Values) -> str:
    """The lanes that go on, as the runtime says."""
    stored = values() if tells_order(ctx.unit.observed) else "null"
    if not _is_pattern(ctx, found):
        return _told_each(ctx, found, stored)
    assert found.shape is not None
    site = _pattern_site(ctx, found)

    def together() -> list[str]:
        mask = ("i32", ctx.bits_of(found.mask))
        given = ("ptr", "%w"), ("ptr", site), mask, ("i64", found.base), ("ptr", stored)
        return [ctx.call(f"i{LANES}", "pe_observe_pattern", *given)]

    def each() -> list[str]:
        return [_told_each(ctx, found, stored)]

    return ctx.when(ctx.wrapped(), each, together, [f"i{LANES}"], likely=False)[0] if found.shape.widenings else together()[0]


def _is_pattern(ctx: Context, found: Access) -> bool:
    """Whether observers can be told of an access as a pattern of lanes."""
    if found.shape is None or found.bytes is None or found.size not in (*PARTS_OF_WORDS, *WHOLE_WORDS) or ctx.checking:
        return False
    return not is_half(found.address.base, found.space)


def _pattern_site(ctx: Context, found: Access) -> str:
    """What is constant about it."""
    return ctx.site(found.op, PATTERN_SITE, **_pattern_fields(ctx, found))


def _pattern_fields(ctx: Context, found: Access, shift: int = 0) -> dict[str, Value]:
    """Those of a ``pe_pattern_site``, for addresses so many bytes before those of the access."""
    assert found.shape is not None
    runs = runs_of(found.shape.offsets, found.size) or Runs(1, found.size)
    narrow = isinstance(found.address.base, Reg) and found.address.base.type.bits == 32
    place = place_of(found, ctx.shared_accesses.families)
    return {
        "kind": _told_kind(found),
        "space": found.space_code,
        "size": found.size,
        "width": runs.width,
        "step": runs.step,
        "narrow": int(narrow),
        "span": place.span,
        "low": (place.low + shift) % 2**64,
        "first": (place.first + shift) % 2**64,
        "family": place.family,
        "offset": [(offset + shift) % 2**64 for offset in found.shape.offsets],
    }


def _stamping(ctx: Context, found: Access) -> stamps.Stamping | None:
    """The test of an access by stamps; None if it has to be told."""
    if found.bytes not in WHOLE_WORDS or ctx.checking:
        return None
    if found.shape is not None:
        return stamps.of_pattern(ctx, found)
    runs = expected(ctx, found)
    return stamps.of_runs(ctx, found, runs) if runs is not None else None


def _told_kind(found: Access) -> int:
    """PE_READ ..., and whether it is strong, and for whom."""
    if not found.strong:
        return found.kind
    return found.kind | int(lib.PE_STRONG) | strength(found.op)


def _told_each(ctx: Context, found: Access, values: str) -> str:
    """The same, lane by lane."""
    return ctx.call(
        f"i{LANES}", "pe_observe", ("ptr", "%w"), ("i32", ctx.position(found.op)), ("i32", str(_told_kind(found))),
        ("i32", str(found.space_code)), ("i32", str(found.size)), ("i32", ctx.bits_of(found.mask)),
        ("ptr", stored_addresses(ctx, found)), ("ptr", values),
    )  # fmt: skip


def tell_order(ctx: Context, op: Op, what: int, mask: str = "") -> None:
    """Tell the runtime of what orders the accesses of a warp (PE_FENCE ...), in code that tells of all accesses."""
    if tells_order(ctx.unit.observed) or tells_waits(ctx.unit.observed):
        ctx.call(
            "void", "pe_observe_order", ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", str(what)),
            ("i32", ctx.bits_of(mask or ctx.mask_of(op))),
        )  # fmt: skip


def tell_fence(ctx: Context, op: Op, mask: str = "") -> None:
    """The same of a fence, whose scope is a modifier of the instruction."""
    tell_order(ctx, op, next((code for name, code in SCOPES.items() if name in op.mods.values()), lib.PE_FENCE), mask)


def tell_release(ctx: Context, found: Access) -> None:
    """The same of an access that releases what came before it: it is a fence, and then a strong access."""
    if not RELEASING.isdisjoint(found.op.mods.values()):
        tell_fence(ctx, found.op, found.mask)


def _is_usual(ctx: Context, found: Access) -> str:
    """i1: the whole access lies in the window of its space, or in the range that its worker keeps: of device memory, and of
    shared memory where blanks or waits are told."""
    kept = kept_range(ctx, found.op) if found.space in ("generic", "global") else None
    if found.space == "shared":
        kept = kept_in_shared(ctx)
    return _is_in(ctx, found, kept)


def _has_no_blanks(ctx: Context, found: Access) -> str:
    """i1: the same, or it is seen that an access of shared memory reads what somebody has written."""
    usual = _is_usual(ctx, found)
    if not blanks.can_be_seen(ctx, found):
        return usual
    return ctx.when(usual, lambda: ["true"], lambda: [blanks.reads_none(ctx, found)], ["i1"])[0]


def kept_in_shared(ctx: Context) -> Range | None:
    """Addresses of shared memory at which nobody need be told of an access for the sake of blanks or of waits; None: all."""
    if not (tells_blanks(ctx.unit.observed) or tells_waits(ctx.unit.observed)):
        return None
    kept = _range_at(ctx, str(RANGE_BYTES * int(lib.PE_SHARED_RANGE)))
    kept.first = ctx.scalar.bin("sub", "i64", kept.first, ctx.field("shared_base"))
    return kept


def _is_in(ctx: Context, found: Access, kept: Range | None) -> str:
    """i1: the whole access lies in the window of its space, or in a range."""
    if found.shape is not None:
        return pattern_test(ctx, found.span, kept)
    runs = expected(ctx, found) if found.grouped else None
    if runs is not None:
        return groups_within(ctx, found, runs, kept)
    return ctx.scalar.icmp("eq", f"i{LANES}", failing(ctx, found, lambda: found.base, kept), "0")


def is_plain_read(found: Access) -> bool:
    """Whether it is one of device memory that orders nothing."""
    return found.kind == lib.PE_READ and not found.strong and found.space in ("generic", "global")


def untold_range(ctx: Context, op: Op) -> Range | None:
    """Where in device memory nobody need be told of what an instruction reads; None: everywhere."""
    if leaves_stamps(ctx.unit.observed):
        return _quiet_range(ctx, op)
    return kept_range(ctx, op) if tells_strays(ctx.unit.observed) else None


def _quiet_range(ctx: Context, op: Op) -> Range:
    """The same of memory that the launch only reads."""
    return kept_range(ctx, op, int(lib.PE_QUIET_RANGES))


def kept_range(ctx: Context, op: Op, first: int = 0) -> Range:
    """The range that the worker keeps for a position: a ``pe_range``, which any access of device memory may have left."""
    number = ctx.scalar.bin("udiv", "i32", ctx.position(op), str(int(lib.PE_POSITIONS)))
    number = ctx.scalar.bin("urem", "i32", number, str(int(lib.PE_RANGES)))
    offset = ctx.scalar.cast("zext", "i32", ctx.scalar.bin("mul", "i32", number, str(RANGE_BYTES)), "i64")
    return _range_at(ctx, ctx.scalar.bin("add", "i64", offset, str(RANGE_BYTES * first)) if first else offset)


def _range_at(ctx: Context, offset: str) -> Range:
    """That in the worker's list of ranges, so many bytes from its beginning."""
    place = ctx.inst(f"inttoptr i64 {ctx.scalar.bin('add', 'i64', ctx.field('ranges'), offset)} to ptr")
    start = ctx.inst(f"load i64, ptr {place}, align 8")
    rest = ctx.inst(f"getelementptr i8, ptr {place}, i64 {RANGE_BYTES // 2}")
    return Range(start, ctx.inst(f"load i64, ptr {rest}, align 8"))
