"""The writer of random kernels: registers, conditions, scopes, and the choice of statements, which other modules register.

Results of the kernels do not depend on the order in which threads run: they write places of their own, shared memory between
barriers, and sums and the like that are the same in any order. Warp instructions name the lanes that execute them. Loops end:
those with a condition of their own by a counter.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

Extent = tuple[int, int, int]
PLACES = 8  # words of the output that are a thread's own
REGISTERS, FLOATS, WIDE, NARROW, PREDICATES = 10, 4, 4, 4, 3
COMPARE = ["eq", "ne", "lt", "le", "gt", "ge"]
COMMON_FEATURES = ("", "forms", "exit")
FAVOUR = 3  # how much more likely statements of other features are, in the programs that have these
CONSTANTS = [0, 1, 2, 3, 7, 31, 32, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


@dataclass(frozen=True)
class Scope:
    """Where statements are written: ``together``, all threads of the block are there that have not exited; ``members`` is the
    register of the lanes that are there where they are fewer."""

    together: bool
    members: str = ""


@dataclass
class Writer:
    """``features`` are the families of statements that a program has. In a device function, ``kernel`` is false, and ``pointer``
    tells whether it has one; ``functions`` are those that may be called, by their signatures."""

    random: random.Random
    block: Extent
    functions: dict[str, list[str]]
    features: frozenset[str]
    budget: int
    kernel: bool = True
    pointer: bool = False
    lines: list[str] = field(default_factory=list)
    number: int = 0
    shared_bytes: int = 0

    @property
    def threads(self) -> int:
        """Of a block."""
        return math.prod(self.block)

    @property
    def whole(self) -> bool:
        """Every warp has all its lanes, at any time."""
        return "exit" not in self.features and self.threads % 32 == 0

    def fresh(self) -> int:
        self.number += 1
        return self.number

    def emit(self, text: str) -> None:
        self.lines.append("  " + text)

    def use_shared(self, size: int) -> None:
        """So many bytes of shared memory must be set up."""
        self.shared_bytes = max(self.shared_bytes, size)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    # -- operands

    def register(self) -> str:
        return f"%r{self.random.randrange(REGISTERS)}"

    def value(self) -> str:
        """A register or a constant."""
        if self.chance(0.3):
            return str(self.random.choice([*CONSTANTS, self.random.randrange(1 << 32)]))
        return self.register()

    def float(self) -> str:
        return f"%f{self.random.randrange(FLOATS)}"

    def wide(self) -> str:
        return f"%d{self.random.randrange(WIDE)}"

    def narrow(self) -> str:
        return f"%h{self.random.randrange(NARROW)}"

    def predicate(self) -> str:
        return f"%q{self.random.randrange(PREDICATES)}"

    def condition(self, *, uniform: bool = False) -> str:
        """A predicate; ``uniform``: the same in all threads of a block."""
        if not uniform and self.chance(0.15):
            return self.predicate()
        if not uniform and self.chance(0.1):
            return self.lone()
        name = f"%p{self.fresh()}"
        operands = (
            (f"%u{self.random.randrange(2)}", str(self.random.randrange(4))) if uniform else (self.register(), self.value())
        )
        kind = "u32" if uniform or self.chance(0.6) else "s32"
        if not uniform and self.chance(0.4):  # of few bits, so that both sides happen
            self.emit(f"and.b32 %x0, {operands[0]}, {self.random.choice([1, 2, 3, 5, 16])};")
            operands = ("%x0", str(self.random.randrange(3)))
        self.emit(f"setp.{self.random.choice(COMPARE)}.{kind} {name}, {operands[0]}, {operands[1]};")
        return name

    def lone(self) -> str:
        """A predicate that at most one thread of a row, or all but one, find true; or with another one fewer, or more."""
        name = f"%p{self.fresh()}"
        self.emit(f"mov.u32 %x0, {self.pick('%tid.x', '%laneid')};{self.pick('', ' and.b32 %x0, %x0, 31;')}")
        which = f"%u{self.random.randrange(2)}" if self.chance(0.3) else str(self.random.choice([0, 0, 1, 5, 31, 37]))
        alone = self.chance(0.5)
        self.emit(f"setp.{'eq' if alone else 'ne'}.u32 {name}, %x0, {which};")
        if self.chance(0.3):
            self.emit(f"{'and' if alone else 'or'}.pred {name}, {name}, {self.predicate()};")
        return name

    def guard(self, probability: float = 0.2) -> str:
        if not self.chance(probability):
            return ""
        return f"@{self.pick('', '!')}{self.condition()} "

    # -- statements

    def statements(self, count: int, scope: Scope, depth: int) -> None:
        for _ in range(count):
            if self.budget <= 0:
                return
            self.budget -= 1
            self.statement(scope, depth)

    def statement(self, scope: Scope, depth: int) -> None:
        possible = [one for one in STATEMENTS if one.feature in self.features and one.where(self, scope, depth)]
        weights = [one.weight * (FAVOUR if one.feature not in COMMON_FEATURES else 1) for one in possible]
        chosen = self.random.choices(possible, weights)[0]
        chosen.write(self, scope, depth)


Where = Callable[[Writer, Scope, int], bool]
Write = Callable[[Writer, Scope, int], None]


@dataclass(frozen=True)
class Statement:
    write: Write
    weight: float
    where: Where
    feature: str


STATEMENTS: list[Statement] = []


def anywhere(w: Writer, scope: Scope, depth: int) -> bool:
    return True


def in_kernels(w: Writer, scope: Scope, depth: int) -> bool:
    return w.kernel


def together(w: Writer, scope: Scope, depth: int) -> bool:
    """All threads of the block are there that have not exited."""
    return w.kernel and scope.together


def in_step(w: Writer, scope: Scope, depth: int) -> bool:
    """No thread of the block has exited or will exit, and all are there."""
    return together(w, scope, depth) and "exit" not in w.features


def by_every_block(w: Writer, scope: Scope, depth: int) -> bool:
    """All blocks of the grid get there in step: no condition on the number of the block, and no loop, is around it."""
    return in_step(w, scope, depth) and depth == 0


def whole_warps(w: Writer, scope: Scope, depth: int) -> bool:
    """All lanes of every warp are there."""
    return together(w, scope, depth) and w.whole


def with_members(w: Writer, scope: Scope, depth: int) -> bool:
    """It is known which lanes are there."""
    return w.kernel and (scope.together or bool(scope.members))


def members_of(scope: Scope) -> str:
    """The lanes that are there; all, of the block's, where they are together."""
    return "-1" if scope.together else scope.members


def shallow(w: Writer, scope: Scope, depth: int) -> bool:
    return depth < 4


def statement(weight: float, where: Where = anywhere, feature: str = "") -> Callable[[Write], Write]:
    """Register a statement; ``feature``: only programs that have it use the statement."""

    def add(fn: Write) -> Write:
        STATEMENTS.append(Statement(fn, weight, where, feature))
        STATEMENTS.sort(key=lambda one: (one.write.__module__, one.write.__name__))  # whichever module is imported first
        return fn

    return add
