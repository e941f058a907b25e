"""Instructions on the edges of their types have the words of an NVIDIA H200 (driver 580.159.04, CUDA 13.0, 2026-11-26).

The driver compiled the PTX, so that what is several machine instructions was measured as a whole.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from tests.support.hardware_words import GROUPS, WORDS, operands, results

AT_ONCE = 40
NOT_THE_MANUALS = {
    "vadd.u32.u32.u32.sat", "vadd.u32.u32.s32.sat", "vadd.u32.s32.u32.sat", "vsub.u32.u32.s32.sat", "vabsdiff.u32.u32.s32.sat",
    "vabsdiff.u32.s32.u32.sat",
}  # fmt: skip
"""What the assembler's sequences for sm_90 do not saturate as the manual says."""


def differences(group: str, instruction: str, got: np.ndarray, place: int) -> list[str]:
    """Of the recorded words; of long rows the digest, too."""
    words = WORDS[f"words/{group}"][place]
    step = -(-len(got) // len(words))
    wrong = np.flatnonzero(got[::step] != words)[:3]
    told = [
        f"{instruction} of {[hex(x[i * step]) for x in operands(group)]}: {got[i * step]:#x}, not {words[i]:#x}" for i in wrong
    ]
    if not told and f"digests/{group}" in WORDS:
        digest = hashlib.sha256(got.tobytes()).hexdigest()
        told += [f"{instruction}: words in between"] * (digest != WORDS[f"digests/{group}"][place])
    return told


@pytest.mark.parametrize("group", GROUPS)
def test_words(group: str) -> None:
    instructions = WORDS[f"instructions/{group}"].tolist()
    told = {}
    for first in range(0, len(instructions), AT_ONCE):
        some = instructions[first : first + AT_ONCE]
        for k, got in enumerate(results(group, some, like="sm_90")):
            told[some[k]] = differences(group, some[k], got, first + k)
    wrong = {name: text for name, text in told.items() if text}
    assert wrong.keys() == NOT_THE_MANUALS & told.keys(), "\n".join(line for text in wrong.values() for line in text)
