"""mbarrier objects and asynchronous copies, which are complete when they are issued."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxemu._runtime import ffi, lib
from ptxemu.interpreter.atomics import atomic, operation, type_code
from ptxemu.interpreter.lane import YIELD, Lane, Step
from ptxemu.interpreter.memory import addresses, each, store
from ptxemu.interpreter.surfaces import mask_of
from ptxemu.interpreter.transfer import site
from ptxemu.interpreter.translate import Reader, Translator, bits_of, method
from ptxemu.ir.ops import Imm, Op, items_of
from ptxemu.ir.types import B64, TYPES, U32, U64

SECOND, VALUES, STATE, OBJECTS = 1, 2, 3, 4  # areas
V1 = "layout::v1"
WORDS = {
    "arrive": "ARRIVE", "arrive_drop": "DROP", "init": "INIT", "inval": "INVAL", "expect_tx": "EXPECT_TX",
    "complete_tx": "COMPLETE_TX", "noComplete": "NO_COMPLETE",
}  # fmt: skip


# ---------------------------------------------------------------- mbarrier


def _code(op: Op) -> int:
    if "async" in op.mods:  # the copies before it are complete
        return int(lib.PE_MBARRIER_ARRIVE_NOINC if "noinc" in op.mods else lib.PE_MBARRIER_ARRIVE_LATER)
    if op.mods.get("layout") == V1:
        return int(lib.PE_MBARRIER_INIT_V1)
    order = ("arrive", "arrive_drop", "init", "inval", "expect_tx", "complete_tx", "noComplete")
    return int(getattr(lib, "PE_MBARRIER_" + "_".join(WORDS[word] for word in order if word in op.mods)))


Update = Callable[[Any, list[Lane], Any], None]


def update_of(t: Translator, op: Op, code: int, value: Reader, name: str = "a") -> Update:
    """How lanes operate on mbarrier objects, whose addresses are the operand ``name``; old contents go to the last argument."""
    address, space = t.access(op, name)
    constants = site("mbarrier", op, op=code, space=space)

    def update(warp: Any, group: list[Lane], state: Any = ffi.NULL) -> None:
        mask, at = addresses(warp, group, address)
        values = warp.grid.transfer.fill(VALUES, 4, group, value)
        warp.grid.call("pe_mbarrier", warp, constants, mask, at, values, state)
        warp.block.cluster.progress()

    return update


@method("mbarrier")
def mbarrier(t: Translator, op: Op) -> Step:
    value = next((operand for name in ("count", "tx") if (operand := op.get(name)) is not None), Imm(1, U32))
    update, write = update_of(t, op, _code(op), t.reader(value, U32)), t.result(op)

    def step(warp: Any, group: list[Lane]) -> None:
        state = warp.grid.transfer.area(STATE)
        update(warp, group, ffi.NULL if write is None else state.pointer)
        for lane in group if write is not None else ():
            write(lane, state.elements[8][lane.index])  # type: ignore[misc]

    return step


@method("mbarrier_layout")
def mbarrier_layout(t: Translator, op: Op) -> Step:
    """check_layout."""
    update, write = update_of(t, op, int(lib.PE_MBARRIER_LOOK), lambda lane: 0), t.result(op)
    wanted = int(op.mods["layout"] == V1)

    def step(warp: Any, group: list[Lane]) -> None:
        state = warp.grid.transfer.area(STATE)
        update(warp, group, state.pointer)
        for lane in group if write is not None else ():
            write(lane, int(state.elements[8][lane.index] >> int(lib.PE_MBARRIER_LAYOUT_BIT) & 1 == wanted))  # type: ignore[misc]

    return step


@method("mbarrier_wait")
def mbarrier_wait(t: Translator, op: Op) -> Step:
    """test_wait, try_wait: then the others have a turn, even where the phase is complete, so that they see it, too."""
    name = next(mod for mod in op.mods if mod.endswith("_wait")).upper()
    address, space = t.access(op, "a")
    constants = site("mbarrier", op, op=getattr(lib, f"PE_MBARRIER_{name}"), space=space)
    read = t.reader(op["phase"], U32) if "parity" in op.mods else t.reader(op["state"], U64)
    shift = 0 if "parity" in op.mods else int(lib.PE_MBARRIER_PHASE_BIT)
    write = t.result(op)

    def step(warp: Any, group: list[Lane]) -> int:
        mask, at = addresses(warp, group, address)
        parities = warp.grid.transfer.fill(VALUES, 4, group, lambda lane: read(lane) >> shift & 1)
        done = warp.grid.call("pe_mbarrier_wait", warp, constants, mask, at, parities) & mask
        for lane in group if write is not None else ():
            write(lane, done >> lane.index & 1)  # type: ignore[misc]
        warp.polling = done != mask
        return YIELD

    return step


@method("mbarrier_pending_count")
def pending_count(t: Translator, op: Op) -> Step:
    """The arrivals that a state has recorded as pending."""
    state, mask = t.reader(op["state"], B64), (1 << int(lib.PE_MBARRIER_PENDING_BITS)) - 1
    return each(t, op, lambda lane: state(lane) & mask)


# ---------------------------------------------------------------- clusters


def _in_window(op: Op) -> bool:
    """Whether the address is one of ``.shared::cluster``; those of 32 bits are."""
    return "space" in op.mods or op.type() is U32


@method("mapa")
def mapa(t: Translator, op: Op) -> Step:
    """The same place in the shared memory of another CTA; if there is none, no access can have the address."""
    kind = op.type()
    address, rank, mask = t.reader(op["a"], kind), t.reader(op["rank"], U32), bits_of(kind)
    if _in_window(op):
        return each(t, op, lambda lane: lane.warp.windows.of_rank(address(lane), rank(lane)) & mask)
    return each(t, op, lambda lane: lane.warp.windows.moved(address(lane), rank(lane)))


@method("getctarank")
def getctarank(t: Translator, op: Op) -> Step:
    """The rank of the CTA whose shared memory has the address; the thread's own for addresses elsewhere."""
    address = t.reader(op["a"], op.type())
    if _in_window(op):
        return each(t, op, lambda lane: lane.warp.windows.rank_in(address(lane)))
    return each(t, op, lambda lane: lane.warp.windows.rank_of(address(lane)))


@method("cluster_cancel")
def cluster_cancel(t: Translator, op: Op) -> Step:
    """clusterlaunchcontrol.try_cancel: each lane takes the cluster that would begin next."""
    (target, space), (told, _) = t.access(op, "a"), t.access(op, "m")
    constants = site("cancel", op, space=space, multicast=int("multicast" in op.mods))

    def step(warp: Any, group: list[Lane]) -> None:
        for lane in group:
            mask, at = addresses(warp, [lane], target)
            objects = warp.grid.transfer.fill(SECOND, 8, [lane], told)
            with warp.grid.offer():
                warp.grid.call("pe_cluster_cancel", warp, constants, mask, at, objects)
        warp.block.cluster.progress()

    return step


@method("cancel_query")
def cancel_query(t: Translator, op: Op) -> Step:
    """The words of a response are x, y and z, and whether there was a cluster."""
    read, writers = t.operand(op, "a"), t.writers(op)
    first = 3 if "is_canceled" in op.mods else "xyz".index(op.mods["axis"][-1]) if "axis" in op.mods else 0

    def step(warp: Any, group: list[Lane]) -> None:
        for lane in group:
            response = read(lane) >> 32 * first
            for index, write in enumerate(writers):
                if write is not None:
                    write(lane, response >> 32 * index & 0xFFFF_FFFF)

    return step


# ---------------------------------------------------------------- copies


Sides = Callable[[Any, list[Lane]], tuple[int, Any, Any]]


def _sides(t: Translator, instruction: Op, /, **fields: int) -> tuple[Any, Sides]:
    """What is constant about a copy; and the lanes as a mask, and their target and source addresses."""
    (target, to_space), (source, from_space) = t.access(instruction, "d"), t.access(instruction, "s")

    def find(warp: Any, group: list[Lane]) -> tuple[int, Any, Any]:
        mask, to = addresses(warp, group, target)
        return mask, to, warp.grid.transfer.fill(SECOND, 8, group, source)

    return site("copy", instruction, target=to_space, source=from_space, **fields), find


@method("copy")
def copy(t: Translator, op: Op) -> Step:
    """cp.async: what is not read (``src-size``, ``ignore-src``) becomes zeros."""
    size = op["immsize"]
    assert isinstance(size, Imm)
    (constants, sides), whole = _sides(t, op, size=size.bits), size.bits
    given: Reader | None = None
    if "ignore" in op.row.names:
        ignored = t.operand(op, "ignore")
        given = lambda lane: 0 if ignored(lane) else whole  # noqa: E731
    elif op["given"] is not None:
        given = t.reader(op["given"], U32)

    def step(warp: Any, group: list[Lane]) -> None:
        mask, to, source = sides(warp, group)
        read = ffi.NULL if given is None else warp.grid.transfer.fill(VALUES, 4, group, given)
        warp.grid.call("pe_copy", warp, constants, mask, to, source, read)

    return step


def _completion(t: Translator, op: Op) -> Update | None:
    """The bytes of a bulk copy are taken off an mbarrier's count."""
    if "m" not in op.row.names:
        return None
    return update_of(t, op, int(lib.PE_MBARRIER_COMPLETE_TX), t.reader(op["size"], U32), "m")


def _bulk(t: Translator, op: Op, function: str, constants: Any, sides: Sides, chosen: Reader | None, takes_mask: bool) -> Step:
    size, complete = t.reader(op["size"], U32), _completion(t, op)

    def step(warp: Any, group: list[Lane]) -> None:
        mask, to, source = sides(warp, group)
        more = [warp.grid.transfer.fill(VALUES, 4, group, size)]
        if takes_mask:
            more.append(ffi.NULL if chosen is None else warp.grid.transfer.fill(STATE, 2, group, chosen))
        warp.grid.call(function, warp, constants, mask, to, source, *more)
        if complete is not None:
            complete(warp, group, ffi.NULL)

    return step


@method("bulk_copy")
def bulk_copy(t: Translator, op: Op) -> Step:
    constants, sides = _sides(t, op)
    if "multicast" in op.mods:
        return _multicast(t, op, constants, sides)
    chosen = t.reader(op["bytes"], TYPES["u16"]) if "mask" in op.mods else None
    return _bulk(t, op, "pe_bulk_copy", constants, sides, chosen, True)


@method("bulk_copy_within")
def bulk_copy_within(t: Translator, op: Op) -> Step:
    """Without the bytes at both ends that may be out of bounds."""
    (constants, sides), complete = _sides(t, op), _completion(t, op)
    numbers = [(area, t.reader(op[name], U32)) for area, name in ((VALUES, "size"), (STATE, "left"), (OBJECTS, "right"))]
    assert complete is not None

    def step(warp: Any, group: list[Lane]) -> None:
        mask, to, source = sides(warp, group)
        filled = [warp.grid.transfer.fill(area, 4, group, number) for area, number in numbers]
        warp.grid.call("pe_bulk_copy_within", warp, constants, mask, to, source, *filled)
        complete(warp, group, ffi.NULL)

    return step


class Receivers:
    """The CTAs of the cluster that an operand names, as bits, and what is told there: the mbarrier of its operand ``name``."""

    def __init__(self, t: Translator, op: Op, code: int, name: str) -> None:
        self._objects, space = t.access(op, name)
        self._ranks = t.reader(op["ctas"], TYPES["b16"])
        self.site = site("mbarrier", op, op=code, space=space)

    def objects(self, warp: Any, area: int, group: list[Lane]) -> Any:
        return warp.grid.transfer.fill(area, 8, group, self._objects)

    def ranks(self, warp: Any, area: int, group: list[Lane]) -> Any:
        return warp.grid.transfer.fill(area, 2, group, self._ranks)


def _multicast(t: Translator, op: Op, constants: Any, sides: Sides) -> Step:
    """The same in every CTA of the cluster that the operand names, and its mbarrier."""
    told, size = Receivers(t, op, int(lib.PE_MBARRIER_COMPLETE_TX), "m"), t.reader(op["size"], U32)

    def step(warp: Any, group: list[Lane]) -> None:
        ends, sizes = sides(warp, group), warp.grid.transfer.fill(VALUES, 4, group, size)
        ranks, objects = told.ranks(warp, STATE, group), told.objects(warp, OBJECTS, group)
        warp.grid.call("pe_bulk_multicast", warp, constants, told.site, *ends, sizes, ranks, objects)
        warp.block.cluster.progress()

    return step


@method("bulk_reduce")
def bulk_reduce(t: Translator, op: Op) -> Step:
    kind = op.type()
    constants, sides = _sides(t, op, op=operation(op, kind), type=type_code(kind.name))
    return _bulk(t, op, "pe_bulk_reduce", constants, sides, None, False)


def _telling(t: Translator, op: Op, step: Step, size: int) -> Step:
    """An instruction that tells an mbarrier how many bytes have arrived."""
    if "m" not in op.row.names:
        return step
    update = update_of(t, op, int(lib.PE_MBARRIER_COMPLETE_TX), lambda lane: size, "m")

    def both(warp: Any, group: list[Lane]) -> None:
        step(warp, group)
        update(warp, group, ffi.NULL)

    return both


@method("st_async")
def st_async(t: Translator, op: Op) -> Step:
    return _telling(t, op, store(t, op), op.type().bytes * len(items_of(op["v"])))


@method("red_async")
def red_async(t: Translator, op: Op) -> Step:
    return _telling(t, op, atomic(t, op), op.type().bytes)


@method("st_bulk")
def st_bulk(t: Translator, op: Op) -> Step:
    """Zeros."""
    (address, space), size = t.access(op, "a"), t.reader(op["size"], B64)
    constants = site("copy", op, target=space)

    def step(warp: Any, group: list[Lane]) -> None:
        _, at = addresses(warp, group, address)
        warp.grid.call("pe_bulk_zero", warp, constants, mask_of(group), at, warp.grid.transfer.fill(VALUES, 8, group, size))

    return step
