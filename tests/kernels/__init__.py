"""Whole kernels: control flow, calls, functions, modules of compilers, and the tiers and engines that run them."""
