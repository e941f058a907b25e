"""Whether ptxemu takes and compiles a module: its kernels, and a kernel that calls each of its other functions."""

from __future__ import annotations

import re

from ptxemu.driver.compile import Options, emit_all, front
from ptxemu.text.errors import PtxError, UnsupportedError

FUNCTION = re.compile(
    r"^(?:\.visible\s+|\.weak\s+)?\.func\s*(?:\((?P<result>[^)]*)\))?\s*(?P<name>[\w$.]+)\s*\(?(?P<rest>[^{;]*)\{", re.MULTILINE
)
EXTERNAL_FUNCTION = re.compile(
    r"^\.extern\s+\.func\s+((?:\([^)]*\)\s*)?([\w$.]+)[^;{]*?(?:\([^)]*\))?\s*)(?:\.noreturn\s*)?;", re.MULTILINE
)
EXTERNAL_VARIABLE = re.compile(r"^\.extern\s+(\.(?:global|const)\s[^;\[]*)(\[\d*\])?\s*;", re.MULTILINE)
BUILT_IN = ("vprintf", "malloc", "free", "__assertfail")
PARAMETER = re.compile(r"\.param\s+(?P<type>(?:\.align\s+\d+\s+)?\.\w+)\s+[\w$.]+(?P<size>\[\d*\])?")


def verdict(ptx: str) -> str:
    """``ok``, ``unsupported: why``, or ``FAIL: why``."""
    try:
        whole = completed(ptx)
        module = front(whole + callers(whole), "module.ptx")
        names = [function.name for function in module.entries]
        if names:
            emit_all(module, names, Options(), "llvm")
    except UnsupportedError as error:
        return f"unsupported: {_line(error)}"
    except PtxError as error:
        return f"FAIL: {_line(error)}"
    except Exception as error:
        return f"FAIL: {type(error).__name__}: {_line(error)}"
    return "ok"


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0].split("error: ")[-1]


def completed(ptx: str) -> str:
    """A module with something in place of what other modules would define."""
    with_variables = EXTERNAL_VARIABLE.sub(lambda found: found[1] + (found[2] or "").replace("[]", "[1]") + ";", ptx)
    return EXTERNAL_FUNCTION.sub(
        lambda found: found[0] if found[2] in BUILT_IN else f".func {found[1]}{{ ret; }}", with_variables
    )


def callers(ptx: str) -> str:
    """Kernels that call the functions of a module, so that these are compiled. Nobody runs them."""
    code = re.sub(r"//[^\n]*", "", ptx)
    made = [_caller(i, found) for i, found in enumerate(FUNCTION.finditer(code)) if "(" in found.group(0)]
    return "\n".join(made)


def _caller(number: int, function: re.Match[str]) -> str:
    given = list(PARAMETER.finditer(function["rest"]))
    if ".." in function["rest"] or any(parameter["size"] == "[]" for parameter in given):
        return ""
    result = PARAMETER.search(function["result"] or "")
    declared = [(f"a{i}", parameter) for i, parameter in enumerate(given)] + ([("r", result)] if result else [])
    lines = "".join(f".param {parameter['type']} {name}{parameter['size'] or ''}; " for name, parameter in declared)
    answer = "(r), " if result else ""
    arguments = ", ".join(f"a{i}" for i in range(len(given)))
    return f".visible .entry calls_{number}() {{ {{ {lines} call {answer}{function['name']}, ({arguments}); }} ret; }}\n"
