"""What kernels do with their arguments, and warnings where an argument is something else."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest

import ptxemu
from ptxemu import DtypeWarning, InputError
from ptxemu.case import read_case, run_case
from tests.support import api_kernels as ptx

KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b16 %h<3>; .reg .b32 %r<4>; .reg .f32 %f<6>; .reg .f64 %g; .reg .b64 %rd<6>; .reg .pred %q;
  ld.param.u64 %rd1, [p];
  BODY
  ret;
}
"""


def kernel(body: str, **options):
    return ptxemu.loads(KERNEL.replace("BODY", body), **options)["k"]


def use(body: str) -> str:
    found = kernel(body).info.parameters[0].use_at(0)
    return str(found) if found else ""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("ld.global.f32 %f1, [%rd1];", "float*, read"),
        ("cvta.to.global.u64 %rd2, %rd1; add.s64 %rd3, %rd2, 16; st.global.f32 [%rd3+4], %f1;", "float*, written"),
        ("mov.u64 %rd2, %rd1; ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd2], %r1;", "unsigned*, read and written"),
        ("mad.wide.u32 %rd2, %r1, 4, %rd1; atom.global.add.s32 %r2, [%rd2], 1;", "int*, read and written"),
        ("red.global.add.f64 [%rd1], %g;", "double*, read and written"),
        ("ld.global.v2.f32 {%f1, %f2}, [%rd1];", "float*, read"),
        ("ld.global.f32 %f1, [%rd1]; st.global.b32 [%rd1+4], %r1;", "float*, read and written"),
        ("ld.global.u32 %r1, [%rd1]; ld.global.s32 %r2, [%rd1];", "int*, read"),
        ("ld.global.b32 %r1, [%rd1];", "b32*, read"),
        ("ld.global.f32 %f1, [%rd1]; ld.global.u32 %r1, [%rd1];", "pointer, read"),
        ("ld.global.f32 %f1, [%rd1]; ld.global.b64 %rd2, [%rd1];", "pointer, read"),
        ("ld.global.f32 %f1, [%rd1]; mov.u64 %rd2, %rd1; st.global.u64 [%rd2], %rd1;", ""),
        ("ld.global.f32 %f1, [%rd1]; shr.u64 %rd2, %rd1, 1;", ""),
        ("ld.global.f32 %f1, [%rd1]; mov.b64 {%r1, %r2}, %rd1;", ""),
        ("ld.global.f32 %f1, [%rd1]; setp.eq.u64 %q, %rd1, 0;", "float*, read"),
        ("mul.lo.u64 %rd2, %rd1, 4;", ""),
        ("", ""),
        ("suld.b.2d.b32.trap %r1, [%rd1, {%r2, %r3}];", "surface 2d, read"),
        ("sust.b.1d.b32.trap [%rd1, {%r2}], %r1;", "surface 1d, written"),
        ("sust.b.1d.b32.trap [%rd1, {%r2}], %r1; sust.b.2d.b32.trap [%rd1, {%r2, %r3}], %r1;", "surface, written"),
        ("tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r2, %r3}];", "texture 2d, f32"),
        ("txq.width.b32 %r1, [%rd1];", "texture"),
        ("suq.width.b32 %r1, [%rd1]; ld.global.f32 %f1, [%rd1];", ""),
    ],
)
def test_uses(body, expected):
    assert use(body) == expected


@pytest.mark.parametrize("use", ["st.global.f32 [%rd3], %f1;", "ld.global.u32 %r1, [%rd3]; add.u32 %r2, %r1, 1;"])
def test_two_pointers_in_one_register_say_nothing(use):
    text = KERNEL.replace(".u64 p)", ".u64 p, .param .u64 q)").replace(
        "BODY", f"ld.param.u64 %rd2, [q]; selp.b64 %rd3, %rd1, %rd2, %q; {use}"
    )
    assert [item.uses for item in ptxemu.loads(text)["k"].info.parameters] == [(), ()]


def test_a_call_may_do_anything():
    text = KERNEL.replace(".visible", ".func f(.param .b64 x) { ret; }\n.visible").replace(
        "BODY", "st.global.f32 [%rd1], %f1; { .param .b64 x; st.param.b64 [x], %rd1; call f, (x); }"
    )
    assert ptxemu.loads(text)["k"].info.parameters[0].uses == ()


def test_members_of_structs():
    text = ptx.STRUCT
    (found,) = ptxemu.loads(text)["poke"].info.parameters[0].uses
    assert (found.offset, str(found)) == (8, "float*, written")
    with pytest.warns(DtypeWarning, match=r"\(p\), member 2 at byte 8: the kernel uses it as float\*, written, but .* int32"):
        ptxemu.loads(text)["poke"][1, 1]([np.uint32(0), np.float32(1), np.zeros(4, np.int32)])


FLOATS = "ld.global.f32 %f1, [%rd1]; add.f32 %f1, %f1, %f1; st.global.f32 [%rd1], %f1;"
INTEGERS = "ld.global.u32 %r1, [%rd1]; add.s32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;"
MOVED = "ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1+4], %r1;"
HALF = "ld.global.u16 %h1, [%rd1]; add.f16 %h1, %h1, %h1; st.global.u16 [%rd1], %h1;"
SHORT = "ld.global.s16 %h1, [%rd1]; add.s16 %h1, %h1, 1; st.global.s16 [%rd1], %h1;"
SORTED = "ld.global.u32 %r1, [%rd1]; shr.s32 %r2, %r1, 31; xor.b32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1;"
ORDERED = "red.global.max.s32 [%rd1], 5;"
RECORD = np.dtype([("a", "u4"), ("b", "f4")])


@pytest.mark.parametrize(
    ("body", "dtypes"),
    [
        (FLOATS, ["f4", "c8", "u1", RECORD, "V4"]),
        (INTEGERS, ["u4", "i4", "u1", RECORD]),
        (SORTED, ["f4", "i8"]),
        (MOVED, ["f4", "f8", "i8", "i2"]),
        (HALF, ["f2", ml_dtypes.bfloat16, "u2"]),
        (SHORT, ["i2", "u2", "f2", ml_dtypes.bfloat16]),
        (ORDERED, ["f4", "i4"]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_arguments_that_fit(body, dtypes):
    launcher = kernel(body)[1, 1]
    for dtype in dtypes:
        launcher(np.zeros(16, dtype))
        launcher(ptxemu.default_device().to_device(np.zeros(16, dtype)))


@pytest.mark.parametrize(
    ("body", "dtype", "message"),
    [
        (FLOATS, "f8", r"kernel k, argument 0 \(p\): the kernel uses it as float\*, read and written, but the array has float64"),
        (FLOATS, "i4", "has int32"),
        (FLOATS, "u4", "has uint32"),
        (FLOATS, "f2", "has float16"),
        (FLOATS, ml_dtypes.bfloat16, "has bfloat16"),
        (INTEGERS, "i8", r"unsigned\*, read and written, but the array has int64"),
        (INTEGERS, "f4", "has float32"),
        (INTEGERS, "f8", "has float64"),
        (SHORT, "i4", r"short\*, read and written, but the array has int32"),
    ],
)
def test_arguments_that_do_not_fit(body, dtype, message):
    module = kernel(body).module
    for value in (np.zeros(16, dtype), ptxemu.default_device().to_device(np.zeros(16, dtype))):
        with pytest.warns(DtypeWarning, match=message) as told:
            ptxemu.loads(KERNEL.replace("BODY", body))["k"][1, 1](value)
        assert len(told) == 1 and told[0].filename == __file__
    with pytest.warns(DtypeWarning):
        module["k"][1, 1](np.zeros(16, dtype))
    module["k"][1, 1](np.zeros(16, dtype))  # once


def test_strict_makes_it_an_error():
    with pytest.raises(InputError, match=r"argument 0 \(p\): the kernel uses it as float\*.* has int32"):
        kernel(FLOATS, strict=True)[1, 1](np.zeros(16, np.int32))


def test_images_and_arrays_are_different():
    device = ptxemu.Device(memory="16 MiB", workers=1)
    reads = kernel("suld.b.2d.b32.trap %r1, [%rd1, {%r2, %r3}];", device=device)
    with pytest.warns(DtypeWarning, match="uses it as surface 2d, read, but it is an array"), pytest.raises(ptxemu.Fault):
        reads[1, 1](np.zeros(4, np.float32))
    surface = device.surface((4, 4), format="R32_UINT")
    reads[1, 1](surface)
    floats = kernel(FLOATS, device=device)
    with (
        pytest.warns(DtypeWarning, match=r"uses it as float\*, read and written, but it is a surface"),
        pytest.raises(ptxemu.Fault),
    ):
        floats[1, 1](surface)


def test_warm_starts_warn_too():
    for _ in range(2):
        with pytest.warns(DtypeWarning, match="float64"):
            kernel(FLOATS)[1, 1](np.zeros(16))


CASE = """
ptx = "k.ptx"
grid = 1
block = 1
args = { p = { zeros = { dtype = "s32", shape = 16 } } }
"""


def test_cases_warn(tmp_path):
    (tmp_path / "k.ptx").write_text(KERNEL.replace("BODY", FLOATS))
    (tmp_path / "case.toml").write_text(CASE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (text,) = run_case(read_case(tmp_path / "case.toml")).warnings
    assert text.endswith("(p): the kernel uses it as float*, read and written, but the array has int32")
    (tmp_path / "case.toml").write_text(CASE + "strict = true")
    with pytest.raises(InputError, match="has int32"):
        run_case(read_case(tmp_path / "case.toml"))


def test_following_registers_takes_a_time_that_grows_with_the_kernel():
    """Of a chain that is written backwards, each round over the ops finds one register more: nothing is said of it."""
    chain = "".join(f"l{n}: mov.u64 %c{n}, %c{n + 1}; bra l{n - 1};\n" for n in range(1, 40))
    body = f".reg .b64 %c<41>; mov.u64 %c40, %rd1; bra l39;\n{chain}l0: st.global.f32 [%c1], %f1;"
    assert use(body) == ""
    assert use(".reg .b64 %c<3>; mov.u64 %c2, %rd1; mov.u64 %c1, %c2; st.global.f32 [%c1], %f1;") == "float*, written"
