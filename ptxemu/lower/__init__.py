"""Lowering of typed IR to LLVM: one function for each row, in modules named as those of :mod:`ptxemu.isa`."""
