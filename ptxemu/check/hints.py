"""Suggestions in place of what is wrong."""

from __future__ import annotations

from collections.abc import Iterable

from ptxemu.isa.aliases import ELSEWHERE
from ptxemu.text.suggestions import nearest, proposing

CUTOFF = 0.7
CONTROL = frozenset({"if", "else", "for", "while", "do", "switch"})


def instruction_hint(opcode: str, known: Iterable[str]) -> str:
    """What an unknown instruction was meant to be."""
    word = opcode.lower()
    if word in CONTROL:
        return "; PTX has guards and branches: @%p bra label"
    if word in ELSEWHERE:
        return proposing(ELSEWHERE[word])
    known = list(known)
    turned = next((other for other in known if other[0] == word[0] and sorted(other) == sorted(word)), None)
    return proposing(turned or nearest(opcode, known, CUTOFF))
