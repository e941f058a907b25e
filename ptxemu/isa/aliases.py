"""What instructions of other languages are called in PTX."""

from __future__ import annotations

ELSEWHERE = {
    "goto": "bra", "jmp": "bra", "jump": "bra", "branch": "bra", "return": "ret", "load": "ld", "store": "st", "move": "mov",
    "log": "lg2", "log2": "lg2", "exp": "ex2", "exp2": "ex2", "sll": "shl", "srl": "shr", "asr": "shr", "lsl": "shl",
    "lsr": "shr", "select": "selp", "cmp": "setp", "atomic": "atom", "barsync": "bar.sync", "__syncthreads": "bar.sync",
    "__syncwarp": "bar.warp.sync", "__threadfence": "membar.gl", "multiply": "mul", "divide": "div", "printf": "call vprintf",
}  # fmt: skip
