"""What only early versions and targets have: it runs, or is said not to be supported. It is wrong in later ones.

The verdicts are those of ptxas 13.0.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu

MAD = ".entry k () { .reg .f32 %f<5>; mad.f32 %f1, %f2, %f3, %f4; ret; }"
LOCAL = ".local .u32 x;\n.entry k () { .reg .u32 %r<5>; ld.local.u32 %r1, [x]; ret; }"
TEX = ".tex .u32 t;\n.entry k () { .reg .f32 %f<9>; tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5}]; ret; }"


def text(version: str, target: str, body: str) -> str:
    return f".version {version}\n.target {target}\n{body}\n"


@pytest.mark.parametrize(("version", "target", "body", "accepted"), [
    ("1.4", "sm_13", MAD, True), ("2.0", "sm_13", MAD, True), ("3.2", "sm_13", MAD, True),
    ("2.0", "sm_20", MAD, True), ("3.1", "sm_20", MAD, True), ("3.2", "sm_20", MAD, False), ("6.0", "sm_30", MAD, False),
    ("1.4", "sm_13", MAD.replace("f32", "f64"), False), ("1.4", "sm_13", MAD.replace("f32", "rn.f32"), False),
    ("2.3", "sm_20", LOCAL, True), ("3.0", "sm_20", LOCAL, False),
    ("1.4", "sm_13", TEX, True), ("8.0", "sm_80", TEX, False),
])  # fmt: skip
def test_verdicts(version: str, target: str, body: str, accepted: bool) -> None:
    assert (not ptxemu.lint(text(version, target, body), strict=True)) == accepted


@pytest.mark.parametrize(("version", "target", "body", "message"), [
    ("2.3", "sm_20", LOCAL, "<string>:3: a module-scope .local variable, as there were before PTX 3.0, is not supported"),
    ("1.4", "sm_13", TEX, "<string>:3: a module-scope .tex variable, as there were before PTX 1.5, is not supported"),
])  # fmt: skip
def test_what_is_not_supported(version: str, target: str, body: str, message: str) -> None:
    with pytest.raises(ptxemu.UnsupportedError) as caught:
        ptxemu.loads(text(version, target, body))
    assert str(caught.value) == message


@pytest.mark.parametrize(("version", "target", "modifiers"), [
    ("2.3", "sm_20", ""), ("1.4", "sm_13", ""), ("1.4", "sm_13", ".ftz"), ("2.3", "sm_20", ".ftz"),
])  # fmt: skip
def test_mad_is_fused(version: str, target: str, modifiers: str) -> None:
    """As that of later versions, which have to say .rn; a later device flushes where an sm_1x would (PTX ISA, "mad")."""
    registers = ".reg .f32 %f<5>; .reg .u64 %d<2>;"
    loads = "ld.param.u64 %d1, [p]; ld.global.f32 %f1, [%d1]; ld.global.f32 %f2, [%d1+4];"
    fused = f"mad{modifiers}.f32 %f1, %f1, %f1, %f2; st.global.f32 [%d1], %f1;"
    body = f".address_size 64\n.entry k (.param .u64 p) {{ {registers} {loads} {fused} ret; }}"
    values = np.array([1 + 2**-23, -1], np.float32)
    kernel = ptxemu.loads(text(version, target, body))["k"]
    kernel[1, 1](values)
    assert values[0] == np.float32(2**-22 + 2**-46)
    small = np.array([2.0**-75, 0], np.float32)
    kernel[1, 1](small)
    assert small[0] == (0 if modifiers or target == "sm_13" else np.float32(2.0**-149) / 2)
