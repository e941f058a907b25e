"""What an instruction does beyond computing its results: the clauses of ``does=`` of a row, separated by commas.

Memory, by the operand that is an address (``a``), or a surface or texture (``s``)::

    reads [a] as d         the bytes of operand d, of every element if it is a vector
    writes [a] as v
    updates [a] as b       reads and writes them in one
    reads [a] for 16       so many bytes; ``for size``: as many as that operand says; ``for ?``: as its shape says
    reads [a]              the bytes of the address pattern's type
    reads constant [a]     bytes that nobody writes during the launch
    updates mbarrier [m]   an mbarrier object, which its instructions alone touch
    reads s                texels of the surface or texture that operand s names
    reads stack            a register that is not written: the stack pointer, or the carry flag CC.CF (``cc``)
    reads accumulator      the registers of the destinations, before they are written

Threads::

    meets membermask       the lanes that the operand names wait for each other, or those of the warp (``meets warp``)
    meets active           lanes work together, those that happen to be active: none waits
    waits cta              the threads of the CTA, or of the cluster (``waits cluster``), wait for each other
    arrives cta            they are counted, and go on
    waits pair             warps of the two CTAs of a pair wait for each other
    waits mbarrier         until a phase of the object is complete, or not so long
    waits warpgroup        the four warps of a warpgroup wait for each other
    waits time             for a while
    asks lanes             the results tell which lanes are active
    leaves block           control goes elsewhere; ``leaves function``, ``leaves kernel``, ``leaves launch``
    enters function        the start of one

Results are the same in all lanes if the operands are, unless a clause says otherwise::

    varying                whatever the operands; ``varying in local``: in the local state space
    uniform                the same in all lanes that take part
    raw nan                f32 results that only have to be made canonical if they are NaN, which can wait
    quiet nan              the same, and NaNs among them are no signaling ones where code relies on it (lower/values/float.py)
    any nan                what NaN an f32 operand is makes no difference (implied by ``raw nan`` and ``quiet nan``)

Others::

    pure                   nothing but the results
    copies a               the result is that operand, and nothing else happens
    carries a              the result is that operand, of some lane
    faults                 it may fault
    fences                 it orders accesses to memory
    calls                  whatever a function does
    nothing                neither results nor effects

Rows with an elementwise lowering are pure and need not say so.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from ptxemu.isa.operands import Implicit

REGISTERS = ("cc", "stack", "accumulator")
KINDS = {"reads": "read", "writes": "write", "updates": "update"}
ACCESS = re.compile(
    r"(?P<verb>reads|writes|updates)(?: (?P<object>constant|mbarrier))? (?:\[(?P<address>\w+)\]|(?P<name>\w+))"
    r"(?: (?:as (?P<data>\w+)|for (?P<size>\w+|\?)))?"
)
PLACES = {
    "meets": ("membermask", "warp", "active"),
    "waits": ("cta", "cluster", "pair", "mbarrier", "warpgroup", "time"),
    "arrives": ("cta", "cluster"),
    "leaves": ("block", "function", "kernel", "launch"),
    "enters": ("function",),
}
WORDS = {
    "asks lanes": ("asks", True), "varying": ("results", "varying"),
    "varying in local": ("results", "varying in local"), "uniform": ("results", "uniform"),
    "raw nan": ("nan", "raw"), "quiet nan": ("nan", "quiet"), "any nan": ("nan", "any"),
    "faults": ("faults", True), "fences": ("fences", True), "calls": ("calls", True),
}  # fmt: skip
EMPTY = ("pure", "nothing")


class Access(Struct, frozen=True):
    """One access of a row: ``kind`` is read, write or update.

    ``operand`` names the address, or the surface or texture (then ``opaque``).  ``data`` names the operand whose bytes are
    moved, else ``size`` is a number of bytes, the name of an operand that gives it, ``?``, or "" for the type of the address
    pattern.  ``object`` is ``constant``, ``mbarrier`` or "".
    """

    kind: str
    operand: str
    data: str = ""
    size: str = ""
    object: str = ""
    opaque: bool = False

    @property
    def is_of_mbarrier(self) -> bool:
        """Whether an mbarrier object is there, which its instructions alone touch."""
        return self.object == "mbarrier"

    @property
    def reads(self) -> bool:
        return self.kind != "write"

    @property
    def writes(self) -> bool:
        return self.kind != "read"


class Effects(Struct, frozen=True):
    """What the clauses of a row say: texts are the words after the verb, "" without such a clause.

    ``implicit`` are the registers that are read or written without being operands of the text.
    """

    accesses: tuple[Access, ...] = ()
    implicit: Implicit = Implicit()
    copies: str = ""
    carries: str = ""
    meets: str = ""
    waits: str = ""
    arrives: str = ""
    leaves: str = ""
    enters: str = ""
    results: str = ""
    nan: str = ""
    asks: bool = False
    faults: bool = False
    fences: bool = False
    calls: bool = False

    @property
    def operands(self) -> tuple[str, ...]:
        """The operands that the clauses name."""
        found = [name for name in (self.copies, self.carries) if name]
        found += [name for access in self.accesses for name in (access.operand, access.data, access.size) if name.isidentifier()]
        return (*found, "membermask") if self.meets == "membermask" else tuple(found)

    @property
    def reads(self) -> bool:
        """Whether it reads memory that may change during the launch."""
        return any(access.reads and access.object != "constant" for access in self.accesses)

    @property
    def writes(self) -> bool:
        return any(access.writes for access in self.accesses)

    @property
    def pure(self) -> bool:
        """Whether it does nothing but compute results from operands; whether these differ between lanes is another matter."""
        threads = self.meets or self.waits or self.arrives or self.leaves or self.enters or self.asks
        return not (self.accesses or threads or self.faults or self.fences or self.calls)

    @property
    def counts_cta(self) -> bool:
        """Whether it is a barrier of the CTA."""
        return "cta" in (self.waits, self.arrives)

    @property
    def counts_threads(self) -> bool:
        """Whether threads that have left the kernel matter to it, as it counts those that come."""
        return bool(self.arrives) or self.waits in ("cta", "cluster")

    @property
    def together(self) -> bool:
        """Whether the lanes that execute it do so as a group, which must not be empty."""
        return bool(self.meets or self.asks or self.calls or self.leaves == "launch" or self.waits == "time")


PURE = Effects()


@cache
def parse(text: str) -> Effects:
    """The effects that clauses state; AssertionError if one is not in the language."""
    found: dict[str, object] = {}
    accesses: list[Access] = []
    registers: dict[str, list[str]] = {"reads": [], "writes": []}
    for clause in filter(None, (part.strip() for part in text.split(","))):
        verb, _, rest = clause.partition(" ")
        if clause in WORDS:
            name, value = WORDS[clause]
            found[name] = value
        elif (verb in ("copies", "carries") and rest.isidentifier()) or (verb in PLACES and rest in PLACES[verb]):
            found[verb] = rest
        elif clause not in EMPTY:
            made = _access(clause)
            if made.opaque and made.operand in REGISTERS:
                registers[verb].append(made.operand)
            else:
                accesses.append(made)
    implicit = Implicit(**{verb: tuple(names) for verb, names in registers.items()})
    return Effects(tuple(accesses), implicit, **found)  # type: ignore[arg-type]


def _access(clause: str) -> Access:
    match = ACCESS.fullmatch(clause)
    assert match is not None, f"no row can do this: {clause}"
    opaque = match["address"] is None
    name = match["name"] if opaque else match["address"]
    return Access(KINDS[match["verb"]], name, match["data"] or "", match["size"] or "", match["object"] or "", opaque)
