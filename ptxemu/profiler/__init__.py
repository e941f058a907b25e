"""Counts what launches do as a GPU's profiler would show it: a model of warps, sectors and banks, without times.

It watches the interpreter (:mod:`ptxemu.interpreter.observer`). Names of metrics are those of Nsight Compute; what differs
is said in docs/profiling.md.
"""
