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


def changed(made: bytes, at: int, value: int, size: int) -> bytes:
    return made[:at] + value.to_bytes(size, "little") + made[at + size :]


# Bytes of a map, as docs/semantics.md has them: offset, value, size, and what the fault says.
HOSTILE = [
    (0, 0, 4, "there is no tensor map"), (4, 4, 1, "there is no tensor map"), (5, 0, 1, "no dimensions, or more than 5"),
    (5, 6, 1, "no dimensions, or more than 5"), (5, 255, 1, "no dimensions, or more than 5"), (6, 16, 1, "element type"),
    (7, 3, 1, "interleave"), (8, 5, 1, "swizzle mode"), (9, 4, 1, "swizzle mode"), (9, 1, 1, "no such atomicity"),
    (10, 2, 1, "fill mode"), (10, 1, 1, "cannot be filled with NaN"), (11, 4, 1, "L2 promotion"), (16, 8, 8,
    "address is not aligned"),
    (16, 1 << 60, 8, "address is not aligned"), (24, 8, 8, "strides"), (24, 1 << 40, 8, "2.40"), (76, 0, 2, "box is empty"),
    (76, 257, 2, "box is empty"), (78, 65535, 2, "box is empty"), (78, 0, 2, "box is empty"), (76, 2, 2, "multiples of 16 bytes"),
    (86, 0, 1, "element stride"), (87, 9, 1, "element stride"), (87, 255, 1, "element stride"), (91, 1, 1,
    "there is no tensor map"),
    (4, 1, 1, "at least 3 dimensions"), (5, 3, 1, "another number of dimensions"),
]  # fmt: skip


@pytest.mark.parametrize(("at", "value", "size", "text"), HOSTILE)
def test_what_is_no_tensor_map_is_a_fault(device, at, value, size, text):
    made = device.tensor_map(device.to_device(numbers((12, 32))), (4, 8))
    if at == 5 and value == 3:  # a third dimension
        made = changed(changed(changed(made, 48, 64, 8), 80, 1, 2), 88, 1, 1)
    with pytest.raises(ptxemu.Fault, match=text):
        launch(device, load_text(2), changed(made, at, value, size), (0, 0))


@pytest.mark.parametrize("text", [load_text(2), store_text(2), store_text(2, reduce="add")])
@pytest.mark.parametrize("address", [1 << 12, 1 << 46, (1 << 57) - 32, 0x7FFF_0000_0000])
@pytest.mark.parametrize("stride", [16, (1 << 40) - 16])
def test_a_map_of_memory_that_is_not_there(device, text, address, stride):
    made = device.tensor_map(device.to_device(numbers((12, 32))), (4, 8))
    made = changed(changed(changed(made, 16, address, 8), 24, stride, 8), 56, 0, 8)  # of 2^32 x 2^32 elements
    with pytest.raises(ptxemu.Fault, match=r"illegal address|null pointer|invalid address space"):
        launch(device, text, made, (2**31 - 300, 2**31 - 9))


def test_a_map_of_the_memory_of_the_runtime(device):
    """Parameters and shared memory are no global memory."""
    array = numbers((12, 32))
    made = device.tensor_map(device.to_device(array), (4, 8))
    end = changed(made, 16, int(device.to_device(array).address) + (64 << 20), 8)
    with pytest.raises(ptxemu.Fault):
        launch(device, store_text(2), end, (0, 0))


def test_a_box_larger_than_shared_memory(device):
    made = device.tensor_map(device.to_device(numbers((4, 4, 4, 4, 256))), (256, 256, 256, 256, 256))
    with pytest.raises(ptxemu.Fault, match="illegal address"):
        launch(device, load_text(5), made, (0, 0, 0, 0, 0))


def test_random_bytes_are_faults_or_copies(device):
    random = np.random.default_rng(7)
    made = device.tensor_map(device.to_device(numbers((12, 32))), (4, 8))
    kernels = [load_text(2), store_text(2, reduce="xor"), load_text(3, "im2col"), load_text(4, "im2col::w")]
    for number in range(80):
        spoiled = bytearray(made)
        for _ in range(3):
            spoiled[random.integers(4, 128)] = random.integers(0, 256)
        spoiled[16:24] = made[16:24] if number % 2 else spoiled[16:24]
        spoiled[4] = number % 4
        with suppress(ptxemu.Fault):
            launch(device, kernels[number % 4], bytes(spoiled), random.integers(-(2**31), 2**31, 5), offsets=(3, 1, 200))


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
    assert (got == wanted).all()  # of 2^32 rows
    got, wanted = of_zeros(device)
    wanted[3:] = 0
    assert (got == wanted).all()


@pytest.mark.parametrize(
    ("left", "flaw"), [("rank", "no dimensions"), ("element_stride", "an element stride of it"), ("", "no tensor map")]
)
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


def test_changing_what_is_no_map(device):
    text = IN_GLOBAL.format(change="tensormap.replace.tile.global_stride.global.b1024.b64 [%d1], 4, %d6;", map="%d1", declared="")
    with pytest.raises(ptxemu.Fault, match="it has no such field"):
        ptxemu.loads(text, device=device)["k"][1, 32](device.to_device(np.zeros(32, "u4")), 0, 0)


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
    got = launch(device, load_text(2), made, (-2, 4), bytes=3 * 16)
    assert (got == expected(model.gathered(packed, [(4,), (5,), (6,)], -1, 16))).all()
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
    bits = np.array([0, 1, 0x7FFFFF, 0x800000, 0x3F800FFF, 0x3F801000, 0xBF801FFF, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x80000001,
                     0x3F802000, 0x3F803000, 0xC0490FDB, 2, 3], "u4")  # fmt: skip
    array = bits.view("f4")
    got = launch(device, load_text(1), device.tensor_map(device.to_device(array), (16,), type=type), (0,), bytes=64)
    wanted = bits.copy()
    if type.endswith("ftz"):
        wanted[(bits & 0x7F800000) == 0] &= 0x80000000
    if type.startswith("t"):
        finite = (bits & 0x7F800000) != 0x7F800000
        exact = np.abs(wanted.view("f4").astype("f8")[finite])
        unit = 2.0 ** (np.floor(np.log2(np.where(exact < 2.0**-126, 2.0**-126, exact))) - 10)
        rounded = np.floor(exact / unit + 0.5) * unit  # ties away from zero
        with np.errstate(over="ignore"):
            wanted[finite] = rounded.astype("f4").view("u4") | wanted[finite] & 0x80000000
    assert (got[128:192].view("u4") == wanted).all()


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


def test_interleaved_layouts_are_not_supported(device):
    made = device.tensor_map(device.to_device(numbers((4, 4, 32))), (1, 1, 4), interleave="16B")
    with pytest.raises(ptxemu.Fault, match="interleaved layouts are not supported"):
        launch(device, load_text(3), made, (0, 0, 0))


@pytest.mark.parametrize(
    ("options", "text"),
    [({"swizzle": "7B"}, "no swizzle '7B'"), ({"type": "b3"}, "no type 'b3'"), ({"steps": (1,)}, "step has 1 elements, not 2"),
     ({"strides": (8,)}, "multiples of 16"), ({"box": (4, 2**32)}, "out of range"), ({"speed": 1}, "no option 'speed'")],
)  # fmt: skip
def test_maps_that_python_cannot_make(device, options, text):
    with pytest.raises(ptxemu.InputError, match=text):
        device.tensor_map(device.to_device(numbers((12, 32))), **{"box": (4, 8), **options})
