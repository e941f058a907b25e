"""The functions that compilers leave external and that the runtime serves."""

from __future__ import annotations

from ptxemu.ir.ops import Call, Function
from ptxemu.ir.types import ScalarType

# (results, arguments) in bits, as NVIDIA's headers declare them
SIGNATURES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "vprintf": ((32,), (64, 64)),
    "__assertfail": ((), (64, 64, 32, 64, 64)),  # message, file, line, function, size of a character
    "malloc": ((64,), (64,)),
    "free": ((), (64,)),
    "cudaGraphSetConditional": ((), (64, 32)),  # a handle, a value
    "cudaCGGetIntrinsicHandle": ((64,), (32,)),  # of a scope
    "cudaCGSynchronize": ((32,), (64, 32)),  # a handle, flags
    "cudaCGSynchronizeGrid": ((32,), (64, 32)),
}
GRID_SCOPE = 1  # cudaCGScopeGrid


def is_runtime_call(call: Call) -> bool:
    """Whether a call of an external function is one that the runtime serves."""
    if not isinstance(call.callee, Function) or call.callee.name not in SIGNATURES:
        return False
    results, arguments = SIGNATURES[call.callee.name]
    return _widths(call.returns) == results and _widths(call.args) == arguments


def _widths(values: tuple[object, ...]) -> tuple[int, ...]:
    """Bits of each value; 0 stands for a value that is not a scalar."""
    found = []
    for value in values:
        kind = getattr(value, "type", None)
        aggregate = bool(getattr(value, "dims", ())) or getattr(value, "vector", 0) > 1
        found.append(kind.bits if isinstance(kind, ScalarType) and not aggregate else 0)
    return tuple(found)
