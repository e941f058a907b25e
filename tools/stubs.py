"""Writes ptxemu/_runtime.pyi, what type checkers know of the C runtime, from the headers: ``make generated``.

Structures and pointers are ``CData``, which cffi makes at run time and no type checker knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from keyword import iskeyword
from pathlib import Path
from typing import Any

from ptxemu._runtime import ffi, lib

ROOT = Path(__file__).resolve().parent.parent
STUB = ROOT / "ptxemu" / "_runtime.pyi"
HEAD = '''"""The C runtime (csrc/), as cffi exposes it. Generated from the headers by `make generated`."""

from typing import Any, Final, TypeAlias

CData: TypeAlias = Any

ffi: Any

class Lib:
'''


def declarations() -> str:
    """The text of all headers."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("csrc/*/*.h")))


def type_of(kind: Any) -> str:
    """The Python type of a C type."""
    if kind.kind == "void":
        return "None"
    if kind.kind != "primitive":
        return "CData"
    return {"_Bool": "bool", "float": "float", "double": "float"}.get(kind.cname, "int")


def parameters(name: str, header: str) -> list[str]:
    """The names of a function's parameters, as its declaration has them."""
    match = re.search(rf"\b{name}\(([^)]*)\);", header)
    assert match is not None, name
    names = [re.findall(r"\w+", item)[-1] for item in match[1].split(",") if item.strip() != "void"]
    return [f"{parameter}_" if iskeyword(parameter) else parameter for parameter in names]


def members() -> Iterator[str]:
    """One line for each constant, in order of their names, and then for each function."""
    header = re.sub(r"/\*.*?\*/", "", declarations(), flags=re.DOTALL)
    functions = [name for name in dir(lib) if callable(getattr(lib, name))]
    for name in sorted(set(dir(lib)) - set(functions)):
        yield f"    {name}: Final[int]\n"
    for name in functions:
        kind = ffi.typeof(getattr(lib, name))
        named = zip(parameters(name, header), kind.args, strict=True)
        taken = "".join(f", {parameter}: {type_of(argument)}" for parameter, argument in named)
        yield f"    def {name}(self{taken}{', /' if taken else ''}) -> {type_of(kind.result)}: ...\n"


def stub() -> str:
    """The whole file."""
    return HEAD + "".join(members()) + "\nlib: Lib\n"


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
