"""LLVM IR without what LLVM leaves open for some arguments, so that all compilers agree on it."""

from __future__ import annotations

import re

PROMISES = re.compile(r"\b(?:nsw|nuw|exact|disjoint|nneg|samesign|nnan|ninf|nsz|arcp|contract|afn|reassoc|fast)\s+")
ZERO_IS_POISON = re.compile(r"(@llvm\.ct[lt]z\.[^\n]*?), i1 true\)")
RISKY = re.compile(
    r"^(?P<start>\s*%(?P<name>[\w.]+) = (?P<op>shl|lshr|ashr|sdiv|udiv|srem|urem) (?P<type>[\w<> ]+?) "
    r"(?:[%\w.-]+|splat \([^)]*\)|<[^>]*>), )(?P<by>%[\w.]+)(?=\s*(?:$|,|;))",
    re.MULTILINE,
)
ELEMENT = re.compile(
    r"^(?P<start>\s*%(?P<name>[\w.]+) = (?:extract|insert)element <(?P<count>\d+) x [^\n]*, (?P<type>i\d+) )"
    r"(?P<index>%[\w.]+)(?=[ \t]*$)",
    re.MULTILINE,
)
TO_INTEGER = re.compile(
    r"^(?P<start>\s*%[\w.]+ = )fpto(?P<sign>[su])i (?P<source>[\w<> ]+?) (?P<value>%[\w.]+) to (?P<target>[\w<> ]+?)[ \t]*$",
    re.MULTILINE,
)
VECTOR = re.compile(r"<(\d+) x (\w+)>")
KINDS = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}


def defined(source: str) -> str:
    """Without promises, long shifts, divisions by zero, elements and integers out of range, and leave to fuse or to flush."""
    calm = ZERO_IS_POISON.sub(r"\1, i1 false)", PROMISES.sub("", source)).replace("@llvm.fmuladd.", "@llvm.fma.")
    calm = re.sub(r"\b(?:undef|poison)\b", "zeroinitializer", calm)
    calm = re.sub(r"^(attributes #\d+ = )\{[^}]*\}", r"\1{ nounwind }", calm, flags=re.MULTILINE)
    declared: dict[str, None] = {}

    def saturating(found: re.Match[str]) -> str:
        name = f"@llvm.fpto{found['sign']}i.sat.{_suffix(found['target'])}.{_suffix(found['source'])}"
        declared[f"declare {found['target']} {name}({found['source']})\n"] = None
        return f"{found['start']}call {found['target']} {name}({found['source']} {found['value']})"

    return TO_INTEGER.sub(saturating, ELEMENT.sub(_inside, RISKY.sub(_guarded, calm))) + "".join(declared)


def _suffix(kind: str) -> str:
    """The part of an intrinsic's name for a type."""
    vector = VECTOR.fullmatch(kind)
    return f"v{vector[1]}{_suffix(vector[2])}" if vector else KINDS.get(kind, kind)


def _inside(found: re.Match[str]) -> str:
    """An element that the vector has."""
    name = f"%guard.{found['name']}"
    return f"  {name} = urem {found['type']} {found['index']}, {found['count']}\n{found['start']}{name}"


def _guarded(found: re.Match[str]) -> str:
    """A shift by less than the width, a division by a positive number."""
    kind = found["type"]
    vector = VECTOR.fullmatch(kind)
    element = vector[2] if vector else kind
    if not re.fullmatch(r"i\d+", element):
        return found[0]
    bits, name = int(element[1:]), f"%guard.{found['name']}"

    def constant(number: int) -> str:
        return f"splat ({element} {number})" if vector else str(number)

    if found["op"] in ("shl", "lshr", "ashr"):
        return f"  {name} = and {kind} {found['by']}, {constant(bits - 1)}\n{found['start']}{name}"
    lines = f"  {name} = and {kind} {found['by']}, {constant((1 << (bits - 1)) - 1)}\n"
    return f"{lines}  {name}.positive = or {kind} {name}, {constant(1)}\n{found['start']}{name}.positive"
