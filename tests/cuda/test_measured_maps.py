"""cuTensorMapEncode* makes the bytes that an H200's driver made, and refuses what that refused."""

from __future__ import annotations

import ctypes

import pytest

from tests.cuda.test_tensor_maps import ARRAYS, Map, array, place
from tests.support.driver_api import context, library
from tests.support.tensor_maps_set import APIS, calls

CALLS = list(calls())


@pytest.mark.parametrize("api", APIS)
def test_maps_are_those_of_an_h200(api):
    room, wrong, made = Map(), [], 0
    with context():
        for call in CALLS:
            if call.api != api:
                continue
            arguments = [
                array(ARRAYS[name], value) if isinstance(value, tuple) else ctypes.c_uint64(value)
                for name, value in call.arguments.items()
            ]
            ctypes.memset(place(room), 0, 128)
            error = getattr(library(), f"cuTensorMapEncode{api}")(place(room), *arguments)
            made += error == 0
            if error != call.error or (not error and ctypes.string_at(place(room), 128) != call.made):
                wrong.append(call)
    assert made > 300 and not wrong, wrong[:3]
