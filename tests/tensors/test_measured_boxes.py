"""Copies of boxes put every byte where an H200 put it."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.tensor_boxes_set import UNTOUCHED, WORDS, boxes
from tests.tensors.kernels import ROOM, launch, load_text, store_text

BOXES: dict[tuple, list] = {}
for one in boxes():
    BOXES.setdefault(one.kind, []).append(one)


def with_address(made: bytes, address: int) -> bytes:
    return address.to_bytes(8, "little") + made[8:]


@pytest.mark.parametrize("kind", BOXES, ids=lambda kind: "-".join(map(str, kind)))
def test_boxes_are_those_of_an_h200(kind):
    mode, dims, stores, reduce, place = kind
    text = store_text(dims, mode, reduce) if stores else load_text(dims, mode, filled=True)
    text = text.replace("[box+128]", f"[box+{place}]")
    device = ptxemu.Device(memory="64 MiB", workers=1)
    for box in BOXES[kind]:
        memory = np.concatenate([box.memory, np.zeros(16, box.memory.dtype)])  # copies change 16 bytes at a time
        buffer = device.to_device(memory)
        made = with_address(box.made, buffer.address)
        if stores:
            launch(device, text, made, box.coords, box.shared)
            memory[box.at] = box.data
            assert (np.asarray(buffer.copy_to_host()) == memory).all(), box
        else:
            untouched = box.data == UNTOUCHED if box.memory is not WORDS else np.zeros(len(box.data), bool)
            written = int((~untouched).sum())
            wanted = np.full(ROOM, UNTOUCHED, "u1")
            got = launch(device, text, made, box.coords, wanted, offsets=box.offsets, bytes=written)
            wanted[box.start : box.start + len(box.data)] = box.data
            assert (got == wanted).all(), box
