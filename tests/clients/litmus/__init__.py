"""Litmus tests in the PTX dialect of Dat3M: what they say, kernels that do it, and what was seen."""
