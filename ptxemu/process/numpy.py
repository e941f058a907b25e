"""NumPy, imported when something of it is first used: it takes longer than to compile a small kernel."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxemu.process.gc_pause import importing_many

__all__ = ["Array", "np"]


class _Later(ModuleType):
    """A module of which each name is fetched when it is first used."""

    def __getattr__(self, name: str) -> Any:
        with importing_many():
            value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[Any]
else:
    np = _Later("numpy")
