"""What to propose in place of what is wrong."""

from __future__ import annotations

from collections.abc import Iterable

from ptxemu.names import nearest, proposing

CUTOFF = 0.7
ELSEWHERE = {
    "goto": "bra", "jmp": "bra", "jump": "bra", "branch": "bra", "return": "ret", "load": "ld", "store": "st", "move": "mov",
    "log": "lg2", "log2": "lg2", "exp": "ex2", "exp2": "ex2", "sll": "shl", "srl": "shr", "asr": "shr", "lsl": "shl",
    "lsr": "shr", "select": "selp", "cmp": "setp", "atomic": "atom", "barsync": "bar.sync", "__syncthreads": "bar.sync",
    "__syncwarp": "bar.warp.sync", "__threadfence": "membar.gl", "multiply": "mul", "divide": "div", "printf": "call vprintf",
}  # fmt: skip
"""What instructions of other languages are called in PTX."""
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
