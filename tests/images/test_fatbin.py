"""Images of programs: fat binaries as nvcc writes them and as attackers would, and LZ4 against a compressor of our own."""

from __future__ import annotations

import random
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxemu.images import lz4
from ptxemu.images.fatbin import ENTRY, HEADER, INPUT, LINKED, LINKED_MAGIC, LZ4, MAGIC, PTX, entries, text_of, texts_of
from ptxemu.text.errors import InputError, UnsupportedError
from tests.support.places import FATBIN

KINDS = ("plain", "lz4", "zstd")


def image(kind: str) -> bytes:
    return (FATBIN / f"add_{kind}.fatbin").read_bytes()


def fat(*items: tuple[int, int, bytes], flags: int = 0, unpacked: int = 0) -> bytes:
    """A fat binary with entries of (kind, architecture, payload)."""
    body = b""
    for kind, arch, payload in items:
        padded = len(payload) + -len(payload) % 8
        head = ENTRY.pack(kind, 0x101, ENTRY.size, padded, len(payload), 0, 0, arch, 0, 0, flags, 0, unpacked)
        body += head + payload.ljust(padded, b"\0")
    return HEADER.pack(MAGIC, 1, HEADER.size, len(body)) + body


def packed(data: bytes, source: random.Random) -> bytes:
    """An LZ4 block of ``data``: greedy matches of random distances, as the format's document describes them."""
    out, at, literals = bytearray(), 0, bytearray()
    while at < len(data):
        length, distance = 0, source.randint(1, max(1, min(at, 65535)))
        while at + length < len(data) and distance <= at and data[at + length - distance] == data[at + length]:
            length += 1
        if length < 4:
            literals.append(data[at])
            at += 1
            continue
        out += token(len(literals), length - 4) + tail(len(literals)) + literals + struct.pack("<H", distance) + tail(length - 4)
        literals.clear()
        at += length
    return bytes(out + token(len(literals), 0) + tail(len(literals)) + literals)


def token(literals: int, match: int) -> bytes:
    return bytes([min(literals, 15) << 4 | min(match, 15)])


def tail(length: int) -> bytes:
    return b"" if length < 15 else b"\xff" * ((length - 15) // 255) + bytes([(length - 15) % 255])


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_ptx_of_a_fat_binary_is_taken(kind):
    assert ".target sm_75" in text_of(image(kind), 80)
    assert ".target sm_90" in text_of(image(kind), 90)
    assert text_of(image(kind), 75) == text_of(image("plain"), 75)


def test_text_is_an_image_too():
    assert text_of(b".version 8.0\n\0", 80) == ".version 8.0\n"


def test_what_an_image_lacks_is_said():
    with pytest.raises(UnsupportedError, match=r"PTX for compute_75, compute_90 only; the device's .* is 7\.0"):
        text_of(image("plain"), 70)
    with pytest.raises(UnsupportedError, match="no PTX, only machine code for sm_80"):
        text_of(fat((2, 80, b"x")), 80)
    with pytest.raises(UnsupportedError, match="no PTX, only machine code for nothing"):
        text_of(fat(), 80)
    with pytest.raises(UnsupportedError, match="cubin"):
        text_of(b"\x7fELF and so on", 80)
    with pytest.raises(InputError, match="not valid UTF-8"):
        text_of(fat((PTX, 75, b"\xff\xfe")), 80)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_fat_binary_is_damaged(kind):
    whole = image(kind)
    for size in range(4, len(whole)):
        with pytest.raises(InputError, match="damaged"):
            text_of(whole[:size], 90)


def test_sizes_that_lie_are_damage():
    for field, value in [(2, 63), (2, 1 << 31), (3, 1 << 63), (4, 1 << 30)]:
        fields = [PTX, 0x101, ENTRY.size, 8, 8, 0, 0, 75, 0, 0, LZ4, 0, 8]
        fields[field] = value
        body = ENTRY.pack(*fields) + bytes(8)
        with pytest.raises(InputError, match="larger than what holds it"):
            list(entries(HEADER.pack(MAGIC, 1, 16, len(body)) + body))
    with pytest.raises(InputError, match="more than"):
        text_of(fat((PTX, 75, bytes(8)), flags=LZ4, unpacked=1 << 40), 80)
    with pytest.raises(InputError, match="version 7"):
        list(entries(HEADER.pack(MAGIC, 7, 16, 0)))


def test_a_zstd_frame_that_announces_too_much_is_damage():
    data = bytearray(image("zstd"))
    data[572] = 224  # the size in the frame's header
    with pytest.raises(InputError, match="damaged"):
        text_of(bytes(data), 90)


@pytest.mark.parametrize("kind", KINDS)
@given(changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=6))
def test_a_hostile_fat_binary_raises_what_users_see(kind, changes):
    data = bytearray(image(kind))
    for place, value in changes:
        data[place % len(data)] = value
    with suppress(InputError, UnsupportedError):
        assert isinstance(text_of(bytes(data), 90), str)


@given(st.binary(max_size=400), st.integers(1, 8), st.integers(0, 2**32))
def test_lz4_gives_back_what_was_packed(data, repeats, seed):
    whole = data * repeats
    block = packed(whole, random.Random(seed))
    assert lz4.decompress(block, len(whole)) == whole
    for wrong in (len(whole) + 1, len(whole) - 1):
        with pytest.raises(InputError, match="LZ4"):
            lz4.decompress(block, wrong)


@given(st.binary(max_size=64), st.integers(0, 4096))
def test_any_lz4_block_ends_within_its_size(block, size):
    with suppress(InputError):
        assert len(lz4.decompress(block, size)) == size


def linked(*inputs: bytes) -> bytes:
    """What the driver library's linker makes of its inputs."""
    body = b"".join(INPUT.pack(len(one)) + one + b"\0" * (-len(one) % 8) for one in inputs)
    return LINKED.pack(LINKED_MAGIC, LINKED.size + len(body), len(inputs)) + body


def test_linked_images_hold_their_inputs():
    texts = {"<input 1>": "first", "<input 2>": "second!"}
    assert texts_of(linked(b"first\0", fat((PTX, 75, b"second!"))), 80) == (texts, [])
    assert texts_of(b"alone", 80) == ({"<module>": "alone"}, [])


def test_inputs_without_ptx_are_left_out_if_there_are_others():
    machine_code = fat((2, 80, b"x"))
    texts, left_out = texts_of(linked(machine_code, b"text"), 80)
    assert texts == {"<input 2>": "text"}
    assert [line.partition(", only")[0] for line in left_out] == ["input 1 of the link is left out: the fat binary holds no PTX"]
    with pytest.raises(UnsupportedError, match=r"(?s)input 1 .* sm_80.*input 2 "):
        texts_of(linked(machine_code, machine_code), 80)


@pytest.mark.parametrize("at", [9, 20, 25, 30])
def test_damaged_linked_images_are_errors(at):
    whole = linked(b"first", b"second")
    with pytest.raises(InputError):
        texts_of(whole[:at], 80)
    broken = bytearray(whole)
    broken[at : at + 1] = b"\xff"
    with suppress(InputError, UnsupportedError):
        texts_of(bytes(broken), 80)
    broken[24:32] = b"\xff" * 8  # the size of the first input
    with pytest.raises(InputError):
        texts_of(bytes(broken), 80)
