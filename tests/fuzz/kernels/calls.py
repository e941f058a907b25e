"""Device functions of random kernels, and calls of them."""

from __future__ import annotations

from tests.fuzz.kernels.memory import SHARED, SLOTS, address
from tests.fuzz.kernels.writer import PLACES, Scope, Writer, statement

WORDS, STRUCT = "words", "struct"  # signatures: of two words; of a struct and a pointer


def calls_words(w: Writer, scope: Scope, depth: int) -> bool:
    return bool(w.functions.get(WORDS))


def calls_structs(w: Writer, scope: Scope, depth: int) -> bool:
    return bool(w.functions.get(STRUCT))


@statement(5, calls_words)
def call(w: Writer, scope: Scope, depth: int) -> None:
    functions, guard = w.functions[WORDS], w.guard()
    target, kind = w.random.choice(functions), w.random.random()
    operands = f"({w.register()}, {w.register()})"
    if kind < 0.7:
        w.emit(f"{guard}call ({w.register()}), {target}, {operands};")
        return
    if kind < 0.85 or not w.kernel:
        other = w.random.choice(functions)
        w.emit(f"mov.u64 %a1, {target}; mov.u64 %a2, {other}; selp.b64 %a1, %a1, %a2, {w.condition()};")
    else:  # through a table
        w.emit(f"rem.u32 %x0, {w.register()}, {len(functions)}; mul.wide.u32 %a1, %x0, 8; mov.u64 %a2, functions; "
               "add.u64 %a1, %a1, %a2; ld.global.u64 %a1, [%a1];")  # fmt: skip
    w.emit(f"{guard}call ({w.register()}), %a1, {operands}, prototype;")


@statement(6, calls_structs, "pointers")
def call_with_struct(w: Writer, scope: Scope, depth: int) -> None:
    """A struct by value and a pointer to memory of the thread, of any space."""
    _pointer(w)
    target, number = w.random.choice(w.functions[STRUCT]), w.fresh()
    w.emit(f"{{ .param .align 8 .b8 s{number}[16]; .param .b64 p{number}; .param .align 8 .b8 t{number}[16];")
    w.emit(f"st.param.v2.b32 [s{number}], {{{w.register()}, {w.register()}}}; st.param.b64 [s{number}+8], {w.wide()};")
    w.emit(f"st.param.b64 [p{number}], %a1;")
    if w.chance(0.5):
        w.emit(f"call (t{number}), {target}, (s{number}, p{number});")
    else:
        other = w.random.choice(w.functions[STRUCT])
        w.emit(f"mov.u64 %a2, {target}; mov.u64 %a3, {other}; selp.b64 %a2, %a2, %a3, {w.condition()};")
        w.emit(f"call (t{number}), %a2, (s{number}, p{number}), structs;")
    w.emit(f"ld.param.b64 {w.wide()}, [t{number}]; ld.param.b32 {w.register()}, [t{number}+{w.random.choice([4, 8, 12])}]; }}")


def _pointer(w: Writer) -> None:
    """Set %a1 to 16 bytes of the thread's own, as a generic address."""
    kind = w.random.randrange(3) if w.kernel else 0
    if kind == 0:
        w.emit(f"mov.u64 %a1, kept; cvta.local.u64 %a1, %a1; add.u64 %a1, %a1, {w.random.choice([0, 8, 16])};")
    elif kind == 1:
        w.emit(f"add.u64 %a1, %own, {w.random.choice([0, 8, 4 * PLACES - 16])};")
    else:
        w.use_shared(SHARED)
        w.emit(f"mul.wide.u32 %a1, %t2, 16; mov.u64 %a2, words; cvta.shared.u64 %a2, %a2; add.u64 %a1, %a1, %a2; "
               f"add.u64 %a1, %a1, {SLOTS};")  # fmt: skip


def in_functions(w: Writer, scope: Scope, depth: int) -> bool:
    return not w.kernel


@statement(2, in_functions)
def early_return(w: Writer, scope: Scope, depth: int) -> None:
    w.emit(f"@{w.condition()} bra leave;")


def with_pointer(w: Writer, scope: Scope, depth: int) -> bool:
    return w.pointer


@statement(12, with_pointer)
def through_pointer(w: Writer, scope: Scope, depth: int) -> None:
    kind, guard = w.random.random(), w.guard()
    w.emit(f"and.b32 %x2, {w.register()}, 3;")
    at = address(w, "%pointer", "%x2", 4)
    if kind < 0.35:
        w.emit(f"{guard}ld.{w.pick('u32', 's32')} {w.register()}, [{at}];")
    elif kind < 0.7:
        w.emit(f"{guard}st.b32 [{at}], {w.register()};")
    else:
        w.emit(f"{guard}ld.v2.b32 {{{w.register()}, %x1}}, [%pointer+8];")
