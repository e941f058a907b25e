"""Loads, stores, atomics, the heap, and the memory consistency model."""
