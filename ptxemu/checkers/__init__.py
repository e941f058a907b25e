"""Checkers: what programs do wrong, found while they run (docs/checkers.md). The finding is done in csrc/check/."""
