"""Forms: one line of a ``tests/isa`` file that stands for many instructions, each run on many values.

    // form: add(|.sat).s32 %d:T, %a:T, %b:T :: clamp(a + b, "s32") if "sat" in mods else a + b

Left of ``::`` are one or several statements separated by ``;``.  ``(x|y)`` is every alternative in turn; ``<x|y>`` too, but
several such groups step together instead of combining.  Registers are declared where they are first used: ``%d...`` and
``%q...`` are results, the others inputs.  A register's type is a PTX type, ``T`` (the last type among the modifiers of
the last opcode that is written without ``$``), ``U`` (the one before it), ``WT`` (twice as wide as T), or ``mN``: the
register then holds the address of N bytes of global memory, aligned to N (``mT``: one T).  ``$T``, ``$U`` and ``$B``
(as many bits as T) put the type itself into the text.  ``%a:u32~shifts`` draws the values from a pool of ``values.py``.
``%shared`` and ``%local`` are addresses of 32 bytes of the thread's own, ``%t0`` to ``%t3``, ``%l0``, ``%l1``,
``%w``, ``%p0`` and ``%p1`` free registers of 32, 64, 128 bits and one.

``// let cache = <|.ca|.cg>`` names a piece of text, for which ``$cache`` stands in the ``form`` and ``let`` lines below.

Right of it is a Python expression over the inputs by name (bit patterns as int; signed types as signed int; predicates as
bool; memory as a little-endian int) and the names in :mod:`tests.isa.oracles`; ``mods`` are the modifiers of all opcodes, ``T``
and ``U`` the types, ``constant`` the first integer written as an operand, ``text`` the statement.  It gives the result, a tuple
of several, or a function that says whether a bit pattern is right.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from tests.isa import approximate as isa_approximate
from tests.isa import oracles as isa_oracles
from tests.isa import textures as isa_textures
from tests.isa import values as isa_values
from tests.isa import video_oracles
from tests.isa.oracles import bits_of
from tests.support import narrow_oracles

REGISTER = re.compile(r"%([a-z]\w*)(?::(\w+))?(?:~(\w+))?")
GROUP = re.compile(r"\(([^()]*)\)")
STEP = re.compile(r"<([^<>]*)>")
NAMED = re.compile(r"\$([a-z]\w*)")
OPCODE = re.compile(r"(?:@!?%\w+(?::\w+)?\s+)?([a-z]\w*(?:[.:]+[\w$]+)*)")
TYPE = re.compile(
    r"^(?:[usb](?:8|16|32|64|128)|[us][24]|f16|f32|f64|bf16|tf32|f16x2|bf16x2|f32x2|u16x2|s16x2|u8x4|s8x4|pred|s2f6x2|u?e\dm\d(?:x[24])?)$"
)
ORACLES = {**vars(isa_textures), **vars(video_oracles), **vars(narrow_oracles), **vars(isa_approximate), **vars(isa_oracles)}
COUNT, BLOCK = 192, 48  # one full and one partial warp in each block
SHAPES = {"varying": (COUNT // BLOCK, BLOCK), "uniform": (COUNT, 1)}
"""The grid and block of the kernels in which all threads, or one of each block, run a form on one element."""


@dataclass(frozen=True)
class Operand:
    name: str
    type: str
    pool: str
    result: bool

    @cached_property
    def is_memory(self) -> bool:
        return bool(re.fullmatch(r"m\d+", self.type))

    @cached_property
    def is_narrow(self) -> bool:
        """A packed type whose register must have its very width."""
        return self.type in narrow_oracles.BITS

    @cached_property
    def bits(self) -> int:
        if self.is_memory:
            return 8 * int(self.type[1:])
        return bits_of(self.type)

    @cached_property
    def stored(self) -> int:
        """Bytes of one value in the host's arrays."""
        if self.is_memory:
            return self.bits // 8
        if self.result and not self.is_narrow:
            return 4 if self.bits <= 8 else self.bits // 8
        return max(self.bits // 8, 1)

    @property
    def register(self) -> str:
        if self.type == "pred":
            return "pred"
        return "b64" if self.is_memory else f"b{32 if self.bits == 8 and not self.is_narrow else self.bits}"


@dataclass
class Form:
    """One expansion: PTX ``text`` with plain registers."""

    text: str
    operands: list[Operand]
    mods: list[str]
    types: list[str]
    oracle: str
    line: int
    inputs: list[np.ndarray] = field(default_factory=list, repr=False)
    names: dict[str, object] = field(default_factory=dict, repr=False)

    @property
    def sources(self) -> list[Operand]:
        return [operand for operand in self.operands if not operand.result]

    @property
    def results(self) -> list[Operand]:
        return [operand for operand in self.operands if operand.result]


def expand(text: str) -> Iterator[str]:
    """Every choice of alternatives."""
    parts = STEP.split(text)
    steps = [part.split("|") if index % 2 else [part] for index, part in enumerate(parts)]
    for number in range(max(map(len, steps))):
        pieces = GROUP.split("".join(step[number % len(step)] for step in steps))
        choices = [piece.split("|") if index % 2 else [piece] for index, piece in enumerate(pieces)]
        yield from ("".join(chosen) for chosen in itertools.product(*choices))


def with_lets(text: str, lets: dict[str, str], line: int) -> str:
    """The text with each ``$name`` replaced by what a ``let`` gave the name to."""

    def meaning(match: re.Match[str]) -> str:
        assert match[1] in lets, f"line {line}: no 'let' defines {match[0]}"
        return lets[match[1]]

    return NAMED.sub(meaning, text)


def forms_of(directive: str, line: int, names: dict[str, object]) -> list[Form]:
    """The forms of a directive; ``names`` are those of the file's bound textures."""
    template, separator, oracle = directive.partition(" :: ")
    assert separator, f"line {line}: a form needs ' :: ' and what it computes"
    forms = [_form(text, oracle.strip(), line) for text in expand(template.strip())]
    for form in forms:
        form.names = names
    return forms


def _form(text: str, oracle: str, line: int) -> Form:
    mods: list[str] = []
    types: list[str] = []
    for statement in text.split(";"):
        match = OPCODE.match(statement.strip())
        assert match, f"line {line}: no opcode in {statement!r}"
        words = re.split(r"(?<!:)\.|(?<=::)\.", match[1])
        mods += words[1:]
        if "$" not in match[0]:
            types = [word for word in words if TYPE.match(word)]
    names = {"T": types[-1] if types else "", "U": types[-2] if len(types) > 1 else ""}
    names["B"] = f"b{bits_of(names['T'])}" if names["T"] else ""
    text = re.sub(r"\$([TUB])", lambda match: names[match[1]], text)
    operands: dict[str, Operand] = {}

    def declare(match: re.Match[str]) -> str:
        name, kind, pool = match.groups()
        if kind:
            kind = names.get(kind) or _derived(kind, names["T"])
            operands.setdefault(name, Operand(name, kind, pool or "", name[0] in "dq"))
        return f"%{name}"

    text = REGISTER.sub(declare, text)
    return Form(text.strip().rstrip(";"), list(operands.values()), mods, types, oracle, line)


def _derived(kind: str, type: str) -> str:
    if kind == "WT":
        return isa_oracles.wide(type)
    return f"m{bits_of(type) // 8}" if kind == "mT" else kind


# ---------------------------------------------------------------- the kernel


def _head(name: str) -> list[str]:
    """An entry's beginning: the registers that every form may use."""
    return [
        f".visible .entry {name}(.param .u64 inputs, .param .u64 outputs)",
        "{",
        "  .reg .b32 %index, %t0, %t1, %t2, %t3; .reg .b64 %place, %in, %out, %at, %shared, %local, %l0, %l1;",
        "  .reg .pred %p0, %p1; .reg .b128 %w;",
        f"  .shared .align 32 .b8 {name}_shared[{32 * BLOCK}];",
        f"  .local .align 32 .b8 {name}_local[32];",
        "  ld.param.u64 %in, [inputs]; ld.param.u64 %out, [outputs];",
        f"  mov.u64 %shared, {name}_shared; mov.u64 %local, {name}_local;",
    ]


def _declared(form: Form) -> list[str]:
    return [f"    .reg .{operand.register} %{operand.name};" for operand in form.operands]


def bare_kernel_text(forms: list[Form]) -> str:
    """One entry with every form, to be read and not to be run: nothing loads its operands or stores its results."""
    blocks = (line for form in forms for line in ("  {", *_declared(form), f"    {form.text};", "  }"))
    return "\n".join([*_head("bare"), *blocks, "  ret;", "}"])


def kernel_text(forms: list[Form], name: str, uniform: bool) -> str:
    """One entry that runs every form on element ``%index``: the block's number, or the thread's.

    Elements of one size are addressed from one register, for the inputs (``%in4``) and for the outputs (``%out4``), and these
    follow from a 64-bit number (``%place``), which cannot wrap, so that LLVM gets little more than the forms themselves.
    """
    lines = _head(name)
    if uniform:
        lines.append("  mov.u32 %index, %ctaid.x; cvt.u64.u32 %place, %index;")
    else:
        lines.append("  mov.u32 %t0, %tid.x; mul.wide.u32 %at, %t0, 32; add.u64 %shared, %shared, %at;")
        lines.append("  mov.u32 %t1, %ctaid.x; mov.u32 %t2, %ntid.x; mad.lo.u32 %index, %t1, %t2, %t0;")
        lines.append("  mul.wide.u32 %place, %t1, %t2; cvt.u64.u32 %at, %t0; add.u64 %place, %place, %at;")
    for bytes in sorted({operand.stored for form in forms for operand in form.operands}):
        lines.append(f"  .reg .b64 %in{bytes}, %out{bytes}; mul.lo.u64 %at, %place, {bytes};")
        lines.append(f"  add.u64 %in{bytes}, %in, %at; add.u64 %out{bytes}, %out, %at;")
    at_in = at_out = 0
    for form in forms:
        lines += [f"  {{ // {form.text}", *_declared(form)]
        for operand in form.sources:
            lines.append(_load(operand, at_in))
            at_in = _next(at_in, operand)
        for operand in form.results:
            if operand.is_memory:
                lines.append(f"    add.u64 %{operand.name}, %out{operand.stored}, {at_out};")
                at_out = _next(at_out, operand)
        lines.append(f"    {form.text};")
        for operand in form.results:
            if not operand.is_memory:
                lines.append(_store(operand, at_out))
                at_out = _next(at_out, operand)
        lines.append("  }")
    return "\n".join([*lines, "  ret;", "}"])


def _next(at: int, operand: Operand) -> int:
    return -(-(at + COUNT * operand.stored) // 64) * 64


def _load(operand: Operand, at: int) -> str:
    place = f"[%in{operand.stored}+{at}]"
    if operand.is_memory:
        return f"    add.u64 %{operand.name}, %in{operand.stored}, {at};"
    if operand.type == "pred":
        return f"    ld.global.u8 %t0, {place}; setp.ne.u32 %{operand.name}, %t0, 0;"
    if operand.bits == 128:
        return f"    ld.global.v2.b64 {{%l0, %l1}}, {place}; mov.b128 %{operand.name}, {{%l0, %l1}};"
    return f"    ld.global.b{operand.bits} %{operand.name}, {place};"


def _store(operand: Operand, at: int) -> str:
    place = f"[%out{operand.stored}+{at}]"
    if operand.type == "pred":
        return f"    selp.u32 %t0, 1, 0, %{operand.name}; st.global.u32 {place}, %t0;"
    if operand.bits == 128:
        return f"    mov.b128 {{%l0, %l1}}, %{operand.name}; st.global.v2.b64 {place}, {{%l0, %l1}};"
    return f"    st.global.{operand.register} {place}, %{operand.name};"


# ---------------------------------------------------------------- values and results


Launch = Callable[[str, tuple[int, int], np.ndarray, np.ndarray], None]


def run(forms: list[Form], launch: Launch, shapes: Collection[str]) -> list[str]:
    """Run the forms as code of these shapes; one message for each form that is wrong.

    ``launch`` runs a kernel, named after its shape, with a grid and block, the inputs and the outputs.
    """
    prepared = _inputs(forms)
    failures = []
    wanted = [_expected(form) for form in forms]
    for name in shapes:
        for form, want, columns in zip(forms, wanted, _results(forms, launch, name, *prepared), strict=True):
            for index, operand in enumerate(form.results):
                if message := _compare(form, operand, [row[index] for row in want], columns[index]):
                    failures.append(f"{name}: {message}")
    return failures


def results(forms: list[Form], launch: Launch, shape: str = "varying") -> list[list[np.ndarray]]:
    """What each form computes of its ``inputs``: for each result, the bytes of each value."""
    return list(_results(forms, launch, shape, *_inputs(forms)))


def _results(forms: list[Form], launch: Launch, shape: str, inputs: np.ndarray, size: int) -> Iterator[list[np.ndarray]]:
    outputs = np.zeros(size, np.uint8)
    launch(shape, SHAPES[shape], inputs, outputs)
    at = 0
    for form in forms:
        found = {}
        for operand in sorted(form.results, key=lambda operand: not operand.is_memory):
            found[operand.name] = outputs[at : at + COUNT * operand.stored].reshape(COUNT, -1)
            at = _next(at, operand)
        yield [found[operand.name] for operand in form.results]


def _inputs(forms: list[Form]) -> tuple[np.ndarray, int]:
    chunks: list[tuple[int, np.ndarray]] = []
    at = out = 0
    for form in forms:
        form.inputs = isa_values.columns([(o.type, o.bits, o.pool) for o in form.sources], COUNT)
        for operand, column in zip(form.sources, form.inputs, strict=True):
            chunks.append((at, np.ascontiguousarray(column).view(np.uint8).ravel()))
            at = _next(at, operand)
        for operand in [o for o in form.results if o.is_memory] + [o for o in form.results if not o.is_memory]:
            out = _next(out, operand)
    inputs = np.zeros(max(at, 1), np.uint8)
    for start, chunk in chunks:
        inputs[start : start + len(chunk)] = chunk
    return inputs, max(out, 1)


def names_of(form: Form) -> dict[str, object]:
    """What the oracle of a form sees beside its operands."""
    return {
        **ORACLES, **form.names, "mods": form.mods, "T": form.types[-1] if form.types else "",
        "U": form.types[-2] if len(form.types) > 1 else "", "constant": _constant(form.text), "text": form.text,
    }  # fmt: skip


def _expected(form: Form) -> list[tuple[object, ...]]:
    parameters = ", ".join(operand.name for operand in form.sources)
    oracle = eval(compile(f"lambda {parameters}: ({form.oracle})", f"line {form.line}", "eval"), names_of(form))
    columns = [_values(operand, column.tobytes()) for operand, column in zip(form.sources, form.inputs, strict=True)]
    results = [oracle(*values) for values in (zip(*columns) if columns else [()] * COUNT)]
    return [result if isinstance(result, tuple) else (result,) for result in results]


@lru_cache(maxsize=256)
def _values(operand: Operand, column: bytes) -> list[int | bool]:
    """A column of inputs as oracles see it."""
    size = len(column) // COUNT
    return [value_of(operand, int.from_bytes(column[at : at + size], "little")) for at in range(0, len(column), size)]


def _constant(text: str) -> int | None:
    match = re.search(r"(?<=[,{] )-?\d+", text)
    return int(match[0]) if match else None


def value_of(operand: Operand, raw: int) -> int | bool:
    """An input as oracles see it."""
    if operand.type == "pred":
        return bool(raw)
    return isa_oracles.number(operand.type, raw) if not operand.is_memory else raw


def judged(operand: Operand, actual: int, expected: object) -> tuple[bool, str]:
    """Whether a pattern is what an oracle wants, and what that is."""
    if callable(expected):
        return bool(expected(actual)), getattr(expected, "__doc__", None) or "another value"
    assert isinstance(expected, int), f"the oracle gave {expected!r}"
    exact = _extended(operand, expected) & ((1 << 8 * operand.stored) - 1)
    return isa_oracles.same(operand.type, actual, exact), f"{exact:#x}"


def _compare(form: Form, operand: Operand, want: list[object], got: np.ndarray) -> str:
    for index, (expected, item) in enumerate(zip(want, got, strict=True)):
        actual = int.from_bytes(item.tobytes(), "little")
        right, shown = judged(operand, actual, expected)
        if not right:
            given = ", ".join(
                f"{o.name}={int.from_bytes(c[index].tobytes(), 'little'):#x}"
                for o, c in zip(form.sources, form.inputs, strict=True)
            )
            return f"line {form.line}: {form.text}: {given}: %{operand.name} is {actual:#x}, not {shown}"
    return ""


def _extended(operand: Operand, value: int) -> int:
    """A byte as the 32-bit register that holds it."""
    return isa_oracles.number(operand.type, value & 255) if operand.stored == 4 and operand.bits == 8 else value
