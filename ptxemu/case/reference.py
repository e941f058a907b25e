"""Expected results computed by a case's own Python: a ``reference`` function, or an expression over its inputs."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from ptxemu.errors import InputError

FUNCTION = "reference"


def run_script(path: Path, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Call ``reference(inputs)`` of a Python file; it returns the expected arrays by name."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    _guarded(path, lambda: exec(compile(text, str(path), "exec"), names))
    function = names.get(FUNCTION)
    if not callable(function):
        raise InputError(f"{path}: defines no function {FUNCTION}(inputs)")
    result = _guarded(path, lambda: function(dict(inputs)))
    if not isinstance(result, dict) or not result:
        raise InputError(f"{path}: {FUNCTION}(inputs) must return a dict of arrays by name")
    return result


def evaluate(text: str, inputs: Mapping[str, Any], where: str) -> Any:
    """The value of a Python expression over the inputs and ``np``."""
    try:
        code: CodeType = compile(text, where, "eval")
        return eval(code, {"np": np, **inputs})
    except Exception as error:
        raise InputError(f"{where}: {type(error).__name__}: {error}") from None


def _guarded(path: Path, action: Any) -> Any:
    try:
        return action()
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = getattr(error, "lineno", None) or (lines[-1] if lines else 1)
        raise InputError(f"{path}:{line}: {type(error).__name__}: {error}") from None
