"""Control flow of random kernels: branches, loops, graphs of blocks, computed branches."""

from __future__ import annotations

from tests.fuzz.kernels.writer import Scope, Writer, shallow, statement, together


@statement(9, shallow)
def branch(w: Writer, scope: Scope, depth: int) -> None:
    number, uniform = w.fresh(), w.chance(0.25)
    condition = w.condition(uniform=uniform)
    inner, other = Scope(scope.together and uniform), Scope(scope.together and uniform)
    if w.kernel and scope.together and not uniform:
        inner, other = Scope(False, f"%m{number}"), Scope(False, f"%n{number}")
        w.emit(f"vote.sync.ballot.b32 %n{number}, {condition}, -1; not.b32 %m{number}, %n{number};")
    w.emit(f"@{condition} bra else{number};")
    w.statements(w.random.randrange(1, 5), inner, depth + 1)
    if w.chance(0.5):
        w.emit(f"bra end{number};")
        w.label(f"else{number}")
        w.statements(w.random.randrange(1, 5), other, depth + 1)
    else:
        w.label(f"else{number}")
    w.label(f"end{number}")


@statement(6, shallow)
def loop(w: Writer, scope: Scope, depth: int) -> None:
    number, uniform = w.fresh(), w.chance(0.4)
    if uniform:
        w.emit(f"mov.u32 %c{number}, {w.random.randrange(1, 4)};")
    else:
        w.emit(f"and.b32 %c{number}, {w.register()}, {w.random.choice([1, 3, 7])};")
    w.label(f"again{number}")
    inside = Scope(scope.together and uniform)
    w.statements(w.random.randrange(1, 5), inside, depth + 1)
    if not uniform and w.chance(0.4):
        w.emit(f"@{w.condition()} bra out{number};")
        w.statements(w.random.randrange(1, 3), inside, depth + 1)
    w.emit(f"sub.s32 %c{number}, %c{number}, 1; setp.gt.s32 %p{number}, %c{number}, 0; @%p{number} bra again{number};")
    w.label(f"out{number}")


@statement(2, shallow)
def graph(w: Writer, scope: Scope, depth: int) -> None:
    """Blocks that go to each other, in no order, until the fuel is used up; loops may have several entries."""
    number, count = w.fresh(), w.random.randrange(2, 5)
    w.emit(f"mov.u32 %c{number}, {w.random.randrange(3, 9)};")
    w.emit(f"@{w.condition()} bra node{number}_{w.random.randrange(count)};")
    for node in range(count):
        w.label(f"node{number}_{node}")
        w.statements(w.random.randrange(0, 3), Scope(False), depth + 2)
        w.emit(f"sub.s32 %c{number}, %c{number}, 1; setp.lt.s32 %p{number}, %c{number}, 0; @%p{number} bra done{number};")
        w.emit(f"@{w.condition()} bra node{number}_{w.random.randrange(count)};")
    w.label(f"done{number}")


@statement(3, shallow)
def switch(w: Writer, scope: Scope, depth: int) -> None:
    """A computed branch; cases may fall through, and two entries of the list may be one."""
    number, count, uniform = w.fresh(), w.random.choice([2, 4]), w.chance(0.3)
    names = [f"case{number}_{w.random.randrange(count) if w.chance(0.2) else case}" for case in range(count)]
    index = f"%u{w.random.randrange(2)}" if uniform else w.register()
    w.emit(f"cases{number}: .branchtargets {', '.join(names)};")
    w.emit(f"and.b32 %x0, {index}, {count - 1}; {w.guard(0.15)}brx.idx %x0, cases{number};" if not uniform else
           f"and.b32 %x0, {index}, {count - 1}; brx.idx %x0, cases{number};")  # fmt: skip
    for case in range(count):
        w.label(f"case{number}_{case}")
        w.statements(w.random.randrange(0, 3), Scope(scope.together and uniform), depth + 1)
        if w.chance(0.7):
            w.emit(f"{'' if uniform else w.guard(0.2)}bra over{number};")
    w.label(f"over{number}")


@statement(1, together, "exit")
def leave(w: Writer, scope: Scope, depth: int) -> None:
    w.emit(f"@{w.condition()} exit;")
