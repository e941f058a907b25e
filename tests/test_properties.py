"""Any operands: each register-to-register form of ``tests/isa`` against its own oracle, on values that hypothesis draws.

The forms themselves run on fixed edges and random values; here every example is another instruction with other operands, among
them the special values of its types and their neighbours.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from elementwise_harness import DTYPES, run
from elementwise_oracle import FORMATS
from hypothesis import given, settings
from hypothesis import strategies as st
from isa_forms import Form, Operand, judged, names_of, value_of
from isa_runner import FILES, read
from isa_values import POOLS

from ptxemu.isa import rows
from ptxemu.lower.emit import ELEMENTWISE


@cache
def forms() -> list[Form]:
    """Those with one instruction on plain registers."""
    elementwise = {opcode for opcode, found in rows().items() if all(row.lower in ELEMENTWISE for row in found if row.supported)}
    found = [form for path in FILES if path.stem in elementwise for form in read(path).forms]
    return [form for form in found if plain(form)]


def plain(form: Form) -> bool:
    written = [part.strip() for part in form.text.partition(" ")[2].split(",")]
    narrow = all(operand.bits <= 64 for operand in form.operands)
    carries = "cc" in form.mods or form.text.startswith(("addc", "subc", "madc"))
    registers = [f"%{operand.name}" for operand in form.operands]
    return narrow and not carries and ";" not in form.text and written == registers and len(form.results) == 1


def patterns(operand: Operand) -> st.SearchStrategy[int]:
    """Any pattern, with those around the special values of the type more often; one of the form's own pool if it has one."""
    if operand.pool:
        return st.sampled_from(POOLS[operand.pool])
    type, bits = operand.type, operand.bits
    around = [0, 1 << (bits - 1), (1 << bits) - 1] if bits > 1 else [0]
    if type in FORMATS:
        f = FORMATS[type]
        around += [f.one, f.infinity, f.nan, 1 << f.mantissa, f.one | f.sign, f.infinity | f.sign, f.sign | 1 << f.mantissa]
    near = st.builds(lambda x, d: (x + d) % (1 << bits), st.sampled_from(around), st.integers(-2, 2))
    return st.one_of(st.integers(0, (1 << bits) - 1), near)


@given(st.data())
@settings(max_examples=250, deadline=None)
def test_any_operands(data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(forms()), label="form")
    columns = [data.draw(st.lists(patterns(operand), min_size=16, max_size=16), label=operand.name) for operand in form.sources]
    arrays = [np.array(column, DTYPES[operand.bits]) for column, operand in zip(columns, form.sources, strict=True)]
    got = run(form.text.partition(" ")[0], *arrays)
    result = form.results[0]
    code, names = compile(f"({form.oracle})", form.text, "eval"), names_of(form)
    for index, row in enumerate(zip(*columns, strict=True)):
        values = {o.name: value_of(o, x) for o, x in zip(form.sources, row, strict=True)}
        actual = int(value_of(result, int(got[index]))) & ((1 << 8 * result.stored) - 1)
        right, shown = judged(result, actual, eval(code, names | values))
        assert right, f"{form.text}: {[hex(x) for x in row]}: {actual:#x}, not {shown}"
