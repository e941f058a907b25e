"""Atomic operations and reductions on memory: atom, red (PTX ISA, same chapter as the barriers).

The accepted set is the one measured with ptxas, which is narrower than a reading of the manual: f16 kinds need
``.noftz``, their minimum and maximum exist for vectors only, and ``s64`` has no add.
"""

from __future__ import annotations

from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words, traits

CHAPTER = "Parallel Synchronization and Communication Instructions"

SPACES = "space?=global,shared,shared::cta,shared::cluster"
SEMANTICS = {"atom": "sem?=relaxed,acquire,release,acq_rel", "red": "sem?=relaxed,release"}
GATES = (
    "relaxed@6.0@70 acquire@6.0@70 release@6.0@70 acq_rel@6.0@70 cta@5.0@60 gpu@5.0@60 sys@5.0@60 cluster@7.8@90 "
    "shared::cta@7.8@10 shared::cluster@7.8@90 L2::cache_hint@7.4@80 noftz&f32@9.4@90 "
    + " ".join(f"{op}&{type}@3.1@32" for op in ("min", "max", "and", "or", "xor") for type in ("u64", "s64", "b64"))
)

# (operation and type qualifiers, minimum version, minimum target)
SCALAR = (
    ("op=add type=u32,s32,u64", "1.1", 11),
    ("op=min,max type=u32,s32,u64,s64", "1.1", 11),
    ("op=inc,dec type=u32", "1.1", 11),
    ("op=and,or,xor type=b32,b64", "1.1", 11),
    ("op=add type=f32", "2.0", 20),
    ("op=add type=f64", "5.0", 60),
    ("op=add noftz type=f16x2", "6.2", 60),
    ("op=add noftz type=f16", "6.3", 70),
    ("op=add noftz type=bf16,bf16x2", "7.8", 90),
    ("op=add noftz type=f32", "9.4", 90),
)
VECTOR = (
    "op=add noftz? vec=v2,v4 type=f32",
    "op=add,min,max noftz vec=v2,v4,v8 type=f16,bf16",
    "op=add,min,max noftz vec=v2,v4 type=f16x2,bf16x2",
)
EXCHANGE = (
    ("op=exch", "type=b32,b64", "1.1", 11),
    ("op=cas", "type=b32,b64", "1.1", 11),
    ("op=cas", "type=b16", "6.3", 70),
)


def _form(opcode: str, qualifiers: str, operands: str, ptx: str, sm: int, *, scope: str = "cta,cluster,gpu,sys") -> None:
    space = "space?=global" if "vec=" in qualifiers else SPACES
    full = f"{SEMANTICS[opcode]} scope?={scope} {space} {qualifiers}"
    if "op=cas" not in qualifiers:
        full, operands = f"{full} hint?=L2::cache_hint", f"{operands}, policy:u64?hint"
    does = "updates [a] as b, varying" if opcode == "atom" else "updates [a] as b"
    row(opcode, full, operands, ptx=ptx, sm=sm, does=does, chapter=CHAPTER, gates=GATES)


for _opcode, _result in (("atom", "d_:type, "), ("red", "")):
    for _qualifiers, _ptx, _sm in SCALAR:
        _form(_opcode, _qualifiers, f"{_result}[a]:type, b:type", _ptx, _sm)
    for _qualifiers in VECTOR:
        _form(_opcode, _qualifiers, f"{_result.replace('type', 'type*vec')}[a]:type, b:type*vec", "8.1", 90)

for _op, _types, _ptx, _sm in EXCHANGE:
    _operands = "d_:type, [a]:type, b:type" + (", c:type" if _op == "op=cas" else "")
    _form("atom", f"{_op} {_types}", _operands, _ptx, _sm)
for _op, _operands in (("op=exch", "d_:type, [a]:type, b:type"), ("op=cas", "d_:type, [a]:type, b:type, c:type")):
    _form("atom", f"{_op} type=b128", _operands, "8.3", 90, scope="cta,cluster,gpu")
    _form("atom", f"{_op} type=b128", _operands, "8.4", 90)

_ASYNC = (
    ("op=add", "u32,s32,u64,s64"), ("op=min,max", "u32,s32"), ("op=inc,dec", "u32"), ("op=and,or,xor", "b32"),
)  # fmt: skip
for _op, _types in _ASYNC:
    row("red", f"async sem=relaxed scope=cluster space?=shared::cluster completion=mbarrier::complete_tx::bytes {_op} "
        f"type={_types}", "[a]:type, b:type, [m]:b64", ptx="8.1", sm=90, lower="red_async", flags="widened",
        does="updates [a] as b, updates mbarrier [m]", chapter=CHAPTER)  # fmt: skip
    for _order, _ptx, _sm in (("sem=relaxed", "8.1", 90), ("mmio? sem=release", "8.7", 100)):
        row("red", f"async {_order} scope=gpu,sys space?=global {_op} type={_types}", "[a]:type, b:type", ptx=_ptx, sm=_sm,
            lower="red_async", flags="widened", does="updates [a] as b", chapter=CHAPTER, gates="global@8.7@100")  # fmt: skip

traits("named", "atom")
traits("opaque:surfref", "red")
name_words("async", "red")
