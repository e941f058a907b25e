"""Expected results computed by a case's own Python: a ``reference`` function."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ptxemu.text.errors import InputError
from ptxemu.text.files import read_text

FUNCTION = "reference"
MAX_SCRIPT = 16 << 20  # bytes


def run_script(path: Path, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Call ``reference(inputs)`` of a Python file; it returns the expected arrays by name."""
    text = read_text(path, MAX_SCRIPT)
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    _guarded(path, lambda: exec(compile(text, str(path), "exec"), names))
    function = names.get(FUNCTION)
    if not callable(function):
        raise InputError(f"{path}: defines no function {FUNCTION}(inputs)")
    result = _guarded(path, lambda: function(dict(inputs)))
    if not isinstance(result, dict) or not result:
        raise InputError(f"{path}: {FUNCTION}(inputs) must return a dict of arrays by name")
    return result


def _guarded(path: Path, action: Any) -> Any:
    try:
        return action()
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = getattr(error, "lineno", None) or (lines[-1] if lines else 1)
        raise InputError(f"{path}:{line}: {type(error).__name__}: {error}") from None
