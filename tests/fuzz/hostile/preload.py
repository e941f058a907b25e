"""What the process imports and does once from which the children are forked, so that they need not."""

from ptxemu.driver.compile import Options, emit, front
from tests.fuzz.hostile import worker

__all__ = ["worker"]

_KERNEL = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"
emit(front(_KERNEL), "k", Options(opt=0), "obj")
