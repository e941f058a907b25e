"""Structs by value: members where C puts them, pointers in them, and errors that name member and byte."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

import ptxemu
from ptxemu import InputError
from ptxemu.case import read_case, run_case
from ptxemu.cli.structs import parse_struct
from ptxemu.device.module_info import Parameter
from ptxemu.device.structs import DEEPEST, members_of
from tests.support import api_kernels as ptx

SCALARS = [
    (ctypes.c_uint8, np.uint8, "u8"), (ctypes.c_int16, np.int16, "short"), (ctypes.c_uint32, np.uint32, "u32"),
    (ctypes.c_int64, np.int64, "s64"), (ctypes.c_float, np.float32, "float"), (ctypes.c_double, np.float64, "f64"),
]  # fmt: skip


def packed(value, size: int, align: int = 8) -> bytes:
    """The bytes of a struct without pointers."""
    data = bytearray(size)
    for member in members_of(Parameter("p", "b8", size, align, 0, size, None), value, "p"):
        assert isinstance(member.value, bytes)
        data[member.offset : member.offset + len(member.value)] = member.value
    return bytes(data)


def a_struct(dice: random.Random, depth: int = 0):
    """The same members, as types of ctypes with values, as NumPy scalars, and in the words of the command line."""
    fields, values, scalars, words = [], [], {}, []
    for number in range(dice.randrange(1, 6)):
        if depth < 3 and dice.random() < 0.2:
            kind, value, scalar, word = a_struct(dice, depth + 1)
        else:
            kind, convert, name = dice.choice(SCALARS)
            value = dice.randrange(100)
            scalar, word = convert(value), f"{name}:{value}"
            if dice.random() < 0.2:
                kind, value, scalar, word = kind * 2, (value, 1), [scalar, convert(1)], f"{name}:{{{value},1}}"
        fields.append((f"m{number}", kind))
        values.append(value)
        scalars[f"m{number}"] = scalar
        words.append(word)
    made = type("Made", (ctypes.Structure,), {"_fields_": fields})
    return made, tuple(values), scalars, f"{{{','.join(words)}}}"


def contents(struct, data: bytes):
    """The values of the members, read from bytes by ctypes, which knows C's layout."""
    found = struct.from_buffer_copy(data)
    items = (getattr(found, name) for name, *_ in struct._fields_)
    return tuple(
        contents(type(item), bytes(item))
        if isinstance(item, ctypes.Structure)
        else tuple(item)
        if isinstance(item, ctypes.Array)
        else item
        for item in items
    )


@pytest.mark.parametrize("seed", range(200))
def test_members_lie_where_c_puts_them(seed):
    struct, values, scalars, words = a_struct(random.Random(seed))
    size, align = ctypes.sizeof(struct), ctypes.alignment(struct)
    assert contents(struct, packed(scalars, size, align)) == values
    assert contents(struct, packed(parse_struct(words, "p").resolved(str), size, align)) == values


@pytest.mark.parametrize(
    ("words", "size", "align"),
    [
        # sizes and alignments of CUDA's vector_types.h
        ("{char:1,char3:{1,2,3}}", 4, 1), ("{char:1,char4:{1,2,3,4}}", 8, 4), ("{u8:1,ushort2:{1,2}}", 8, 4),
        ("{u8:1,float2:{1,2}}", 16, 8), ("{u8:1,float3:{1,2,3}}", 16, 4), ("{u8:1,float4:{1,2,3,4}}", 32, 16),
        ("{u8:1,half2:{1,2}}", 8, 4), ("{u8:1,double2:{1,2}}", 32, 16), ("{u8:1,double4:{1,2,3,4}}", 48, 16),
        ("{u8:1,ulong3:{1,2,3}}", 32, 8), ("{u8:1,bf16:2}", 4, 2),
    ],
)  # fmt: skip
def test_vectors_have_the_alignment_of_cuda(words, size, align):
    data = packed(parse_struct(words, "p").resolved(str), size, align)
    assert data[0] == 1 and not any(data[1 : size // 4])


@pytest.fixture(scope="module")
def poke():
    return ptxemu.loads(ptx.STRUCT)["poke"]


def test_pointers_are_arrays_and_buffers(poke):
    array, buffer = np.zeros(4, np.float32), ptxemu.default_device().empty(4)
    for where in (array, buffer):
        poke[1, 1]({"index": np.uint32(2), "value": np.float32(7.5), "where": where})
        poke[1, 1]((np.int32(1), ctypes.c_float(2.5), where))
        poke[1, 1](({"i": np.uint32(0), "v": np.float32(1)}, where))
        np.testing.assert_array_equal(np.asarray(where), [1, 2.5, 7.5, 0])


def test_records_of_objects_and_structures_of_ctypes(poke):
    array, buffer = np.zeros(4, np.float32), ptxemu.default_device().empty(4)
    record = np.zeros(1, np.dtype([("index", "u4"), ("value", "f4"), ("where", "O")], align=True))
    record[0] = (3, 1.5, array)
    poke[1, 1](record[0])
    assert array[3] == 1.5

    class Poke(ctypes.Structure):
        _fields_ = [("index", ctypes.c_uint), ("value", ctypes.c_float), ("where", ctypes.c_void_p)]

    poke[1, 1](Poke(1, 0.5, buffer.address))
    np.testing.assert_array_equal(buffer.array, [0, 0.5, 0, 0])


def test_arrays_in_structs_share_memory_with_others():
    text = """
.version 7.8
.target sm_70
.address_size 64
.visible .entry both(.param .align 8 .b8 p[8], .param .u64 q)
{
  .reg .b64 %rd<3>; .reg .b32 %r;
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];
  ld.global.u32 %r, [%rd1]; add.u32 %r, %r, 1; st.global.u32 [%rd2], %r; st.global.u32 [%rd1+4], %r;
  ret;
}
"""
    array = np.array([5, 0, 0], np.uint32)
    ptxemu.loads(text)["both"][1, 1]([array], array[2:])
    np.testing.assert_array_equal(array, [5, 6, 6])


def test_a_null_pointer_in_a_struct_is_one(poke):
    with pytest.raises(ptxemu.Fault, match="null pointer"):
        poke[1, 1]([np.uint32(0), np.float32(0), None])


PACKED = np.zeros(1, [("i", "u1"), ("v", "f4"), ("x", "O")])[0]
NESTED: list = [np.uint32(1)]
for _ in range(DEEPEST + 2):
    NESTED = [NESTED] * 50


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"n": np.uint32(1), "v": np.float32(1)}, r"\(p\): has 16 bytes, but its members take 8: n at 0, v at 4"),
        ([np.uint32(1), np.float64(1), 0], r"\(p\), member 2 at byte 16: int is no type of C: give np.int32\(0\)"),
        ([np.uint32(1)] * 5, "member 4 at byte 16: ends outside of the struct"),
        ({"n": np.uint32(1), "x": object(), "y": 1}, "member y at byte 16: int is no type"),
        ({"n": np.uint32(1), "x": object()}, "member x at byte 8: expects an array, a buffer, an address or None, not object"),
        ([{"n": np.uint32(1), "x": {"y": np.uint32(1), "z": 1.5}}], "member 0.x.z at byte 8: float is no type of C"),
        ([np.uint32(1), []], "member 1 at byte 4: is a struct without members"),
        ([np.uint32(1), b""], "member 1 at byte 4: has no bytes"),
        ([], r"\(p\): is a struct without members"),
        (PACKED, "member v at byte 4: the record has it at byte 1: it is not laid out as C does it"),
        (NESTED, "structs are nested more than 16 deep"),
        ("text", "expects a struct of 16 bytes .* not str"),
        (object(), "expects a struct of 16 bytes .* not object"),
    ],
)
def test_wrong_members_are_named(poke, value, message):
    with pytest.raises(InputError, match=message):
        poke[1, 1](value)


def test_structs_are_for_parameters_that_are_some():
    with pytest.raises(InputError, match=r"\(n\): expects an integer, not dict"):
        ptxemu.loads(ptx.SAXPY)["saxpy"][1, 1]({"n": np.uint32(1)}, 1.0, None, None)


CASE = """
ptx = "k.ptx"
grid = 1
block = 1
[buffers]
x = { zeros = { dtype = "f32", shape = 4 } }
[args]
p = { struct = MEMBERS }
[expect.outputs.x]
values = [0, 0, 7.5, 0]
dtype = "f32"
"""
MEMBERS = '[{ u32 = 2 }, { f32 = 7.5 }, { ptr = "x" }]'


@pytest.fixture
def case(tmp_path):
    def made(members: str):
        (tmp_path / "k.ptx").write_text(ptx.STRUCT)
        (tmp_path / "case.toml").write_text(CASE.replace("MEMBERS", members))
        return read_case(tmp_path / "case.toml")

    return made


@pytest.mark.parametrize("members", [MEMBERS, '[{ struct = [{ u32 = 2 }, { float = 7.5 }] }, { ptr = "x" }]'])
def test_cases_have_structs(case, members):
    assert run_case(case(members)).passed


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ('"x"', "args.p.struct: must be a list"),
        ("[1]", r"args.p.struct\[0\]: must be a table"),
        ("[{ u32 = 1, f32 = 2.0 }]", r"args.p.struct\[0\]: must be one member, such as"),
        ('[{ ptr = "y" }]', "args.p: no array is named 'y'"),
        ('[{ handle = "x" }]', "args.p: no surface, texture or sampler is named 'x'"),
        ("[{ ptr = 1.5 }]", r"struct\[0\]: ptr is a name \(array\) or 0, not 1.5"),
        ("[{ u8 = 256 }]", r"struct\[0\]: values do not make an array of uint8: 256 is not a value"),
        ("[{ u33 = 1 }]", r"struct\[0\]: unknown dtype 'u33'"),
        ('[{ bytes = "0" }]', r"struct\[0\]: must be hexadecimal digits"),
        ("[{ float4 = [1, 2] }]", r"struct\[0\]: float4 has 4 elements, not \[1, 2\]"),
        ("[{ u32 = 2 }]", r"argument 0 \(p\): has 16 bytes, but its members take 4: 0 at 0"),
        ("[" + "{ struct = [" * 20 + "]}" * 20 + "]", "nested more than 16 deep"),
    ],
)
def test_wrong_structs_of_cases(case, members, message):
    with pytest.raises(InputError, match=message):
        run_case(case(members))
