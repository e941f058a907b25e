"""What programs have in place of NumPy arrays: tensors, buffers of bytes, memory of ctypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxemu.process.numpy import np
from ptxemu.text.errors import InputError, printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROTOCOLS = ("__array_interface__", "__array__", "__dlpack__")
LONGEST_REASON = 300  # characters of what another library says


def host_array(value: object, where: str) -> NDArray[Any] | None:
    """A NumPy array over the memory of ``value``, or None if it has none that is an array.

    Takes what has NumPy's array protocols, DLPack's (in memory of the CPU) or Python's buffer protocol.
    Raises InputError, beginning with ``where``, if the value says that it cannot be an array.
    """
    if isinstance(value, np.generic):
        return None
    try:
        if isinstance(value, np.ndarray):
            array: NDArray[Any] = value
        elif any(hasattr(value, name) for name in PROTOCOLS[:2]):
            array = np.asarray(value)
        elif hasattr(value, "__dlpack__"):
            array = np.from_dlpack(value)
        else:
            array = np.asarray(memoryview(value))  # type: ignore[arg-type]
    except Exception as error:  # of the value's own code
        if not any(hasattr(value, name) for name in PROTOCOLS) and isinstance(error, TypeError):
            return None
        reason = printable((str(error) or type(error).__name__).split("\n")[0])[:LONGEST_REASON]
        raise InputError(f"{where}: {type(value).__name__} cannot be used as an array: {reason}") from None
    return array if array.ndim > 0 else None
