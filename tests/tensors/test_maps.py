"""Tensor maps: what is wrong with some, changes by the program, and where they may lie."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

import ptxemu
from tests.support import tensor_model as model
from tests.tensors.kernels import ROOM, launch, load_text, store_text
from tests.tensors.test_copies import expected, numbers


@pytest.fixture
def device():
    return ptxemu.Device(memory="64 MiB", workers=1)


ADDRESS, IM2COL, RANK, TYPE, INTERLEAVE, SWIZZLE, FILL, TF32, ATOMICITY = 0, 64, 68, 71, 75, 77, 79, 80, 87
STRIDE, STRIDE_MORE, DIM, BOX = 96, 224, 256, 440
"""Where fields of a map begin, as docs/semantics.md has them."""


def changed(made: bytes, at: int, bits: int, value: int) -> bytes:
    """A map with some of its bits changed."""
    words, mask = int.from_bytes(made, "little"), (1 << bits) - 1 << at
    return (words & ~mask | value << at & mask).to_bytes(len(made), "little")


HOSTILE = [
    (TYPE, 4, 14, "element type"), (TYPE, 4, 15, "element type"), (TF32, 1, 1, "element type"), (RANK, 3, 5, "more than 5"),
    (RANK, 3, 7, "more than 5"), (RANK, 3, 2, "another number of dimensions"), (RANK, 3, 0, "another number of dimensions"),
    (INTERLEAVE, 2, 3, "interleave"), (INTERLEAVE, 2, 1, "at least 3 dimensions"), (IM2COL, 1, 1, "at least 3 dimensions"),
    (SWIZZLE, 10, 0x201, "swizzle mode does not exist"), (SWIZZLE, 10, 0x203, "swizzle mode does not exist"),
    (ATOMICITY, 2, 1, "no such atomicity"), (FILL, 1, 1, "cannot be filled with NaN"), (ADDRESS, 4, 8, "address is not aligned"),
    (BOX, 8, 8, "multiples of 16 bytes"),
    (BOX, 8, 0, "multiples of 16 bytes"), (SWIZZLE, 2, 1, "longer than what is swizzled"),
]  # fmt: skip


@pytest.mark.parametrize(("at", "bits", "value", "text"), HOSTILE)
def test_what_is_no_tensor_map_is_a_fault(device, at, bits, value, text):
    made = device.tensor_map(device.to_device(numbers((12, 32))), (4, 12))
    with pytest.raises(ptxemu.Fault, match=text):
        launch(device, load_text(2), changed(made, at, bits, value), (0, 0))


@pytest.mark.parametrize("byte", [0, 255])
def test_memory_that_was_never_a_map_is_a_fault(device, byte):
    with pytest.raises(ptxemu.Fault, match="invalid tensor map"):
        launch(device, load_text(1), bytes([byte]) * 128, (0,))


UNUSED = [(57, 7), (65, 3), (83, 3), (89, 7), (240, 16), (431, 9), (480, 32), (512, 512)]


@pytest.mark.parametrize(("at", "bits"), UNUSED)
def test_bits_that_mean_nothing(device, at, bits):
    """An H200 does not look at them either."""
    array = numbers((12, 32))
    made = device.tensor_map(device.to_device(array), (4, 8))
    got = launch(device, load_text(2), changed(made, at, bits, (1 << bits) - 1), (4, 1), bytes=128)
    assert (got == expected(model.gathered(array, [(1,), (2,), (3,), (4,)], 4, 8))).all()


@pytest.mark.parametrize("text", [load_text(2), store_text(2), store_text(2, reduce="add")])
@pytest.mark.parametrize("address", [1 << 12, 1 << 46, (1 << 57) - 32, 0x7FFF_0000_0000])
@pytest.mark.parametrize("stride", [16, (1 << 40) - 16])
def test_a_map_of_memory_that_is_not_there(device, text, address, stride):
    made = device.tensor_map(device.to_device(numbers((12, 32))), (4, 8))
    made = changed(changed(made, ADDRESS, 64, address), DIM, 64, 2**64 - 1)  # of 2^32 x 2^32 elements
    made = changed(changed(made, STRIDE, 32, stride >> 4), STRIDE_MORE, 4, stride >> 36)
    with pytest.raises(ptxemu.Fault, match=r"illegal address|null pointer|invalid address space"):
        launch(device, text, made, (2**31 - 304, 2**31 - 9))


def test_a_map_of_the_memory_of_the_runtime(device):
    """Parameters and shared memory are no global memory."""
    array = numbers((12, 32))
    made = device.tensor_map(device.to_device(array), (4, 8))
    end = changed(made, ADDRESS, 64, int(device.to_device(array).address) + (64 << 20))
    with pytest.raises(ptxemu.Fault):
        launch(device, store_text(2), end, (0, 0))


def test_a_box_larger_than_shared_memory(device):
    made = device.tensor_map(device.to_device(numbers((4, 4, 4, 4, 256))), (1, 1, 1, 1, 256))
    made = changed(made, BOX, 40, 2**40 - 1)  # of 256 elements along each dimension
    with pytest.raises(ptxemu.Fault, match="illegal address"):
        launch(device, load_text(5), made, (0, 0, 0, 0, 0))


def test_random_bytes_are_faults_or_copies(device):
    random = np.random.default_rng(7)
    made = device.tensor_map(device.to_device(numbers((12, 32))), (4, 8))
    kernels = [load_text(2), store_text(2, reduce="xor"), load_text(3, "im2col"), load_text(4, "im2col::w")]
    for number in range(80):
        spoiled = bytearray(made)
        for _ in range(3):
            spoiled[random.integers(8, 64)] = random.integers(0, 256)
        spoiled[8] = spoiled[8] & 0xFE | (number % 4 > 1)  # for im2col copies
        if number % 2:
            spoiled[random.integers(0, 8)] = random.integers(0, 256)
        with suppress(ptxemu.Fault):
            launch(device, kernels[number % 4], bytes(spoiled), random.integers(-(2**27), 2**27, 5) * 16, offsets=(3, 1, 200))


IN_GLOBAL = """.version 8.8
.target sm_100a
.address_size 64
{declared}
.visible .entry k(.param .u64 maps, .param .u64 out, .param .u64 other)
{{
  .reg .b64 %d<9>; .reg .b32 %r<12>; .reg .pred %p<3>; .shared .align 128 .b8 box[512]; .shared .align 128 .b8 held[128];
  .shared .align 8 .b64 bar;
  ld.param.u64 %d1, [maps]; ld.param.u64 %d2, [out]; ld.param.u64 %d6, [other];
  mov.u32 %r11, %tid.x; shl.b32 %r7, %r11, 2; cvt.u64.u32 %d4, %r7; add.u64 %d2, %d2, %d4; setp.ne.u32 %p1, %r11,
  0; mov.u32 %r1, 0;
  add.u64 %d5, %d1, %d4; ld.global.u32 %r2, [%d5]; mov.u32 %r3, held; add.u32 %r3, %r3, %r7; st.shared.u32 [%r3], %r2;
  bar.sync 0;
  {change}
  @%p1 bra DONE;
  mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 %d3, [bar], 512;
  cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [box], [{map}, {{%r1, %r1}}], [bar];
W: mbarrier.try_wait.shared.b64 %p2, [bar], %d3; @!%p2 bra W;
DONE:
  bar.sync 0; mov.u32 %r8, box; add.u32 %r8, %r8, %r7; mov.u32 %r9, 0;
L: ld.shared.u32 %r10, [%r8]; st.global.u32 [%d2], %r10; add.u32 %r8, %r8, 128; add.u64 %d2, %d2, 128; add.u32 %r9, %r9, 1;
  setp.lt.u32 %p2, %r9, 4; @%p2 bra L;
  ret;
}}
"""
PUBLISHED = """@!%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [held], %d6;
  @!%p1 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [held], 1, 2;
  bar.warp.sync -1;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1+128], [held], 128;
  fence.proxy.tensormap::generic.acquire.gpu [%d1+128], 128;
  add.u64 %d1, %d1, 128;"""


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_a_map_that_the_program_changes(device, monkeypatch, engine):
    monkeypatch.setattr(device, "engine", engine)
    array, other = numbers((12, 32)), device.to_device(numbers((12, 32), seed=2))
    made = device.tensor_map(device.to_device(array), (4, 32))
    maps, out = device.to_device(np.frombuffer(made * 2, "u1").copy()), device.to_device(np.zeros((4, 32), "u4"))
    text = IN_GLOBAL.format(change=PUBLISHED, map="%d1", declared="")
    ptxemu.loads(text, device=device)["k"][1, 32](maps, out, other)
    wanted = np.asarray(other.copy_to_host())[:4].copy()
    wanted[2:] = 0  # the tensor has two rows now
    assert (np.asarray(out.copy_to_host()) == wanted).all()


FIELDS = [
    "global_address.{space}.b1024.b64 {map}, %d6", "rank.{space}.b1024.b32 {map}, 1", "box_dim.{space}.b1024.b32 {map}, 0, 32",
    "box_dim.{space}.b1024.b32 {map}, 1, 4", "global_dim.{space}.b1024.b32 {map}, 0, 32",
    "global_dim.{space}.b1024.b32 {map}, 1, 3", "global_stride.{space}.b1024.b64 {map}, 0, 128",
    "element_stride.{space}.b1024.b32 {map}, 0, 1", "element_stride.{space}.b1024.b32 {map}, 1, 1",
    "elemtype.{space}.b1024.b32 {map}, 2", "interleave_layout.{space}.b1024.b32 {map}, 0",
    "swizzle_mode.{space}.b1024.b32 {map}, 0", "fill_mode.{space}.b1024.b32 {map}, 0",
]  # fmt: skip


def of_zeros(device, left="nothing"):
    """What is read by a map that a program makes of zeros, field by field but for some; and its tensor."""
    other = device.to_device(numbers((12, 32), seed=2))
    fields = [field.format(space="global", map="[%d1]") for field in FIELDS if not field.startswith(left)]
    change = "\n".join(f"@!%p1 tensormap.replace.tile.{field};" for field in fields)
    text = IN_GLOBAL.format(change=f"{change}\nfence.proxy.tensormap::generic.acquire.gpu [%d1], 128;", map="%d1", declared="")
    blank, out = device.to_device(np.zeros(32, "u4")), device.to_device(np.zeros((4, 32), "u4"))
    ptxemu.loads(text, device=device)["k"][1, 32](blank, out, other)
    return np.asarray(out.copy_to_host()), np.asarray(other.copy_to_host())[:4].copy()


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_a_map_made_of_zeros(device, monkeypatch, engine):
    monkeypatch.setattr(device, "engine", engine)
    got, wanted = of_zeros(device, "global_dim.{space}.b1024.b32 {map}, 1")
    wanted[1:] = 0  # of one row
    assert (got == wanted).all()
    got, wanted = of_zeros(device)
    wanted[3:] = 0
    assert (got == wanted).all()


@pytest.mark.parametrize(("left", "flaw"), [("rank", "number of dimensions"), ("box_dim", "multiples of 16 bytes")])
def test_fields_that_a_map_made_of_zeros_has_not(device, left, flaw):
    with pytest.raises(ptxemu.Fault, match=flaw):
        of_zeros(device, left)


def test_a_map_in_constant_memory(device):
    array = numbers((12, 32))
    made = device.tensor_map(device.to_device(array), (4, 32))
    declared = f".const .align 128 .b8 fixed[128] = {{{', '.join(map(str, made))}}};"
    out = device.to_device(np.zeros((4, 32), "u4"))
    text = IN_GLOBAL.format(change="mov.u64 %d1, fixed; cvta.const.u64 %d1, %d1;", map="%d1", declared=declared)
    ptxemu.loads(text, device=device)["k"][1, 32](device.to_device(np.zeros(32, "u4")), out, 0)
    assert (np.asarray(out.copy_to_host()) == array[:4]).all()


def test_a_map_in_shared_memory_is_a_fault(device):
    text = IN_GLOBAL.format(change="mov.u64 %d7, held; cvta.shared.u64 %d1, %d7;", map="%d1", declared="")
    made = device.tensor_map(device.to_device(numbers((12, 32))), (4, 32))
    with pytest.raises(ptxemu.Fault, match="invalid address space"):
        ptxemu.loads(text, device=device)["k"][1, 32](device.to_device(np.frombuffer(made, "u1").copy()), 0, 0)


@pytest.mark.parametrize(("type", "narrow"), [("b4x16_p64", 8), ("b6x16_p32", 12)])
def test_packed_elements_are_spread(device, type, narrow):
    packed = np.random.default_rng(1).integers(0, 256, (6, 2, 8 * narrow)).astype("u1")
    strides = (2 * 8 * narrow,)
    made = device.tensor_map(device.to_device(packed), (3, 128), type=type, shape=(6, 256), strides=strides)
    wanted = np.zeros((3, 8, 16), "u1")
    wanted[:2, :, :narrow] = packed[4:, 1].reshape(2, 8, narrow)
    got = launch(device, load_text(2), made, (128, 4), bytes=3 * 128)
    assert (got == expected(wanted.reshape(-1))).all()


def test_packed_elements_without_gaps(device):
    packed = numbers((6, 64), "u1")
    made = device.tensor_map(device.to_device(packed), (3, 32), type="b4x16", shape=(6, 128), strides=(64,))
    got = launch(device, load_text(2), made, (-32, 4), bytes=3 * 16)
    assert (got == expected(model.gathered(packed, [(4,), (5,), (6,)], -16, 16))).all()
    with pytest.raises(ptxemu.Fault, match="first coordinate"):
        launch(device, load_text(2), made, (3, 4))


def test_six_bits_of_bytes_are_packed(device):
    data = np.random.default_rng(1).integers(0, 256, ROOM).astype("u1")
    buffer = device.to_device(np.zeros((4, 96), "u1"))
    made = device.tensor_map(buffer, (2, 128), type="b6x16_p32", shape=(4, 128), strides=(96,))
    launch(device, store_text(2), made, (0, 1), data)
    bits = np.unpackbits(data[128:384].reshape(-1, 1), axis=1, bitorder="little")[:, :6]
    wanted = np.zeros((4, 96), "u1")
    wanted[1:3] = np.packbits(bits.reshape(2, -1), axis=1, bitorder="little")
    assert (np.asarray(buffer.copy_to_host()) == wanted).all()


@pytest.mark.parametrize("type", ["float32_ftz", "tfloat32", "tfloat32_ftz"])
def test_floats_are_converted(device, type):
    """To nearest even, subnormals as well, as an H200 does it; a copy of FLOAT32_FTZ changes nothing."""
    bits = np.array([0, 1, 0x7FFFFF, 0x800000, 0x3F800FFF, 0x3F801000, 0xBF801FFF, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x80000001,
                     0x3F802000, 0x3F803000, 0xC0490FDB, 2, 3], "u4")  # fmt: skip
    array = bits.view("f4")
    got = launch(device, load_text(1), device.tensor_map(device.to_device(array), (16,), type=type), (0,), bytes=64)
    wanted = bits.copy()
    if type.startswith("t"):
        finite = (bits & 0x7F800000) != 0x7F800000
        exact = np.abs(wanted.view("f4").astype("f8")[finite])
        unit = 2.0 ** (np.floor(np.log2(np.where(exact < 2.0**-126, 2.0**-126, exact))) - 10)
        with np.errstate(over="ignore"):
            wanted[finite] = (np.rint(exact / unit) * unit).astype("f4").view("u4") | wanted[finite] & 0x80000000
    assert (got[128:192].view("u4") == wanted).all()


def test_nan_of_19_bits(device):
    bits = np.array([0x7F800001, 0xFF800001, 0x7FC12345, 0xFFFFFFFF], "u4")
    made = device.tensor_map(device.to_device(bits.view("f4")), (4,), type="tfloat32")
    assert (launch(device, load_text(1), made, (0,), bytes=16)[128:144].view("u4") == 0x7FFFE000).all()


WIDE = [((4, 5, 9, 32), 0, 0, 1, 0, 0), ((4, 5, 9, 32), -1, -1, 1, 2, 1), ((40, 5, 9, 32), -1, 0, 2, 1, 0)]


@pytest.mark.parametrize(("shape", "lower", "upper", "step", "halo", "offset"), WIDE)
@pytest.mark.parametrize("mode", ["im2col_w", "im2col_w128"])
def test_pixels_along_w(device, shape, lower, upper, step, halo, offset, mode):
    array, coords = numbers(shape, "u2"), (0, 2, 3, 0)
    lower_w, count = lower + offset, 128 if mode == "im2col_w128" else 20
    made = device.tensor_map(device.to_device(array), mode=mode, lower=(lower,), upper=(upper,), steps=(1, 1, step, 1),
    channels=32,
                             pixels=20, swizzle="64B")  # fmt: skip
    line = range(lower_w, shape[2] + upper + offset, step)
    first = coords[1] + offset
    walk = [(coords[3] + n, coords[2], w) for n in range(200) for w in (range(first, line.stop, step) if n == 0 else line)][
        :count
    ]
    run = 32 if mode == "im2col_w128" else count
    rows = []
    for number, (n, h, w) in enumerate(walk, 1):
        rows.append((n, h, w))
        if number % run == 0:
            rows += [(n, h, w + step * more) for more in range(1, halo + 1)]
    text = load_text(4, "im2col::w" if mode == "im2col_w" else "im2col::w::128")
    got = launch(device, text, made, coords, offsets=(halo, offset), bytes=64 * len(rows))
    assert (got == expected(model.gathered(array, rows, 0, 32), "64B")).all()


def test_halos_that_are_too_long(device):
    made = device.tensor_map(device.to_device(numbers((4, 5, 9, 32), "u2")), mode="im2col_w128", channels=32, swizzle="64B")
    for offsets, text in (((32, 0), "wHalo"), ((0, 32), "wOffset")):
        with pytest.raises(ptxemu.Fault, match=text):
            launch(device, load_text(4, "im2col::w::128"), made, (0, 0, 0, 0), offsets=offsets)


def test_modes_that_are_not_interleaved(device):
    options = {"mode": "im2col_w128", "channels": 8, "interleave": "16B"}
    made = device.tensor_map(device.to_device(numbers((4, 5, 9, 32), "u2")), **options)
    with pytest.raises(ptxemu.Fault, match="only tiles and im2col copies are interleaved"):
        launch(device, load_text(4, "im2col::w::128"), made, (0, 0, 0, 0))


@pytest.mark.parametrize(
    ("options", "text"),
    [({"swizzle": "7B"}, "no swizzle '7B'"), ({"type": "b3"}, "no type 'b3'"), ({"steps": (1,)}, "step has 1 elements, not 2"),
     ({"strides": (8,)}, "multiples of 16"), ({"box": (4, 2**32)}, "out of range"), ({"speed": 1}, "no option 'speed'")],
)  # fmt: skip
def test_maps_that_python_cannot_make(device, options, text):
    with pytest.raises(ptxemu.InputError, match=text):
        device.tensor_map(device.to_device(numbers((12, 32))), **{"box": (4, 8), **options})
