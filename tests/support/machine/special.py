"""MUFU of f32, as ptxemu has it; ``tests/values/test_mufu.py`` and ``make fuzz`` compare that with public words."""

from __future__ import annotations

from functools import cache

from ptxemu.interpreter.evaluator import NAMESPACE, Evaluator
from ptxemu.lower.values.mufu_unit import FUNCTIONS as UNIT
from tests.support.machine.floats import FUNCTIONS, Function

NAMES = {"RCP": "rcp", "RSQ": "rsqrt", "SQRT": "sqrt", "SIN": "sin", "COS": "cos", "LG2": "lg2", "EX2": "ex2"}


def _function(name: str) -> Function:
    evaluator = Evaluator(["x"])
    result = UNIT[name](evaluator, "x")
    body = "\n".join(f"    {line}" for line in (*evaluator.lines, f"return {result}"))
    found: dict[str, Function] = {}
    exec(f"def function(x):\n{body}", NAMESPACE, found)
    return cache(found["function"])


FUNCTIONS.update({mod: _function(name) for mod, name in NAMES.items()})
