"""Worked examples of single surface accesses, through PTX: the bytes of formats, what a store leaves out, signs of reductions."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.sass_harness import memory

TARGET = ".version 8.8\n.target sm_90\n.address_size 64\n"


def surface(format: str, *shape: int, **options: int) -> ptxemu.SurfaceObject:
    return ptxemu.default_device().surface(shape, format=format, geometry=f"{len(shape)}d", **options)


def run(body: str, bound: ptxemu.SurfaceObject, **options: str | bool) -> list[int]:
    """Two words, after one thread has run the body with the surface in %s and the words at %d."""
    text = f"""{TARGET}.entry k(.param .u64 s, .param .u64 d) {{
        .reg .b16 %h<2>; .reg .b64 %s, %d;
        ld.param.u64 %s, [s]; ld.param.u64 %d, [d];
        {body}
        ret; }}"""
    words = np.zeros(2, np.uint32)
    ptxemu.loads(text, options=options)["k"][1, 1](bound, words)
    return words.tolist()


def test_load() -> None:
    """x counts bytes: 4 bytes from byte 20 of row 3, where rows are 256 bytes apart."""
    bound = surface("R8G8B8A8_UNORM", 30, 60, pitch=256)
    raw = memory(bound)
    raw[:] = np.arange(len(raw)) % 251
    body = "suld.b.2d.v2.b16.trap {%h0, %h1}, [%s, {20, 3}]; st.global.v2.u16 [%d], {%h0, %h1};"
    assert run(body, bound)[0] == 9251 | 9765 << 16


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("R8G8B8A8_UNORM", "ff800040"),
        ("B8G8R8A8_UNORM", "0080ff40"),
        ("R16G16_UNORM", "ffff0080"),
        ("R32_FLOAT", "0000803f"),
        ("R16G16B16A16_FLOAT", "003c003800000034"),
        ("A8_UNORM", "40"),
    ],
)
def test_formatted_store(format: str, expected: str) -> None:
    """The red, green, blue and alpha of 1, 0.5, 0 and 0.25."""
    bound = surface(format, 4)
    run("sust.p.1d.v4.b32.trap [%s, {0}], {0x3f800000, 0x3f000000, 0, 0x3e800000};", bound)
    assert bytes(memory(bound)[: len(expected) // 2]).hex() == expected


@pytest.mark.parametrize(
    ("policy", "format", "count", "expected"),
    [
        ("zero", "R8G8B8A8_UINT", 1, "01000000"),
        ("preserve", "R8G8B8A8_UINT", 1, "01777777"),
        ("poison", "R8G8B8A8_UINT", 1, "01cdcdcd"),
        ("zero", "R8G8B8A8_UINT", 2, "01020000"),
        ("preserve", "B8G8R8A8_UINT", 2, "77020177"),
        ("poison", "B8G8R8A8_UINT", 2, "cd0201cd"),
        ("zero", "A8_UNORM", 2, "00"),
        ("preserve", "A8_UNORM", 2, "77"),
        ("preserve", "R16G16_UINT", 1, "01007777"),
    ],
)
def test_missing_components(policy: str, format: str, count: int, expected: str) -> None:
    bound = surface(format, 4)
    memory(bound)[:] = 0x77
    given = {1: ".b32.trap [%s, {0}], 1", 2: ".v2.b32.trap [%s, {0}], {1, 2}"}[count]
    run(f"sust.p.1d{given};", bound, missing_component=policy)
    assert bytes(memory(bound)[: len(expected) // 2]).hex() == expected


@pytest.mark.parametrize(("format", "expected"), [("R32_SINT", 0xFFFFFFFF), ("R32_UINT", 3), ("R32_FLOAT", 3)])
def test_minimum_takes_its_sign_from_the_format(format: str, expected: int) -> None:
    bound = surface(format, 4)
    words = memory(bound).view(np.uint32)
    words[:4] = [5, 0xFFFFFFFF, 7, 0]
    run("sured.p.min.1d.b32.trap [%s, {1}], 3;", bound)
    assert words[:4].tolist() == [5, expected, 7, 0]


def test_strict_reductions_need_an_integer_format() -> None:
    with pytest.raises(ptxemu.Fault, match="format"):
        run("sured.p.min.1d.b32.trap [%s, {1}], 3;", surface("R32_FLOAT", 4), strict=True)
