"""Tensor maps: what copies of tensors are told of an array (PTX ISA, "Tensor-map")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from ptxemu._runtime import ffi, lib
from ptxemu.device.buffer import Buffer
from ptxemu.device.options import TensorOptions
from ptxemu.text.errors import InputError

TYPES = {
    "uint8": "U8", "uint16": "U16", "uint32": "U32", "int32": "S32", "uint64": "U64", "int64": "S64", "float16": "F16",
    "float32": "F32", "float64": "F64", "bfloat16": "BF16", "float32_ftz": "F32_FTZ", "tfloat32": "TF32",
    "tfloat32_ftz": "TF32_FTZ", "b4x16": "B4X16", "b4x16_p64": "B4X16_P64", "b6x16_p32": "B6X16_P32",
}  # fmt: skip
MODES = {"tiled": "TILED", "im2col": "IM2COL", "im2col_w": "IM2COL_W", "im2col_w128": "IM2COL_W"}
PIXELS = {"im2col_w128": 128}  # if none are told
SWIZZLES = {
    "none": ("NONE", "16B"), "32B": ("32B", "16B"), "64B": ("64B", "16B"), "96B": ("96B", "16B"), "128B": ("128B", "16B"),
    "128B_atom_32B": ("128B", "32B"), "128B_atom_32B_flip_8B": ("128B", "32B_FLIPPED"), "128B_atom_64B": ("128B", "64B"),
}  # fmt: skip
INTERLEAVES = {"none": 0, "16B": 1, "32B": 2}
FILLS = {"zeros": 0, "nan": 1}
KINDS = {"dim": "uint64_t", "stride": "uint64_t", "step": "uint32_t", "box": "uint32_t", "lower": "int", "upper": "int"}


class TensorMap(bytes):
    """128 bytes to pass to a kernel, or to copy to device memory. ``buffer`` is the array, which it keeps."""

    buffer: Buffer


def make_tensor_map(buffer: Buffer, box: Sequence[int], options: TensorOptions) -> TensorMap:
    """The map of an array of a device: see :meth:`ptxemu.device.device.Device.tensor_map`. Raises InputError."""
    unknown = options.keys() - TensorOptions.__annotations__.keys()
    if unknown:
        raise InputError(f"tensor map: there is no option '{min(unknown)}'")
    arrays = _arrays(buffer, box, options)
    layout, made = ffi.new("pe_tensor_layout *", {**arrays, **_words(buffer, options)}), ffi.new("pe_tensor_map *")
    layout.rank, layout.address = len(arrays["dim"]), buffer.address
    layout.channels = _number(options.get("channels", 0))
    layout.pixels = _number(options.get("pixels", PIXELS.get(options.get("mode", "tiled"), 0)))
    flaw = lib.pe_tensor_encode(layout, made)
    if flaw:
        raise InputError(f"tensor map: {ffi.string(flaw).decode()}")
    result = TensorMap(bytes(ffi.buffer(made)))
    result.buffer = buffer
    return result


def _arrays(buffer: Buffer, box: Sequence[int], options: TensorOptions) -> dict[str, Any]:
    """The fields that are arrays, with as many elements as the tensor has axes."""
    shape = tuple(options.get("shape", buffer.shape))
    rank, mode = len(shape), options.get("mode", "tiled")
    corners = max(0, 1 if mode.startswith("im2col_w") else rank - 2)
    box_axes = {"box": (box, rank)} if mode == "tiled" else {}
    given = {
        "dim": (shape, rank), "step": (options.get("steps", (1,) * rank), rank), **box_axes,
        "stride": (options.get("strides", _contiguous(shape, buffer.dtype.itemsize)), max(0, rank - 1)),
        "lower": (options.get("lower", (0,) * corners), corners), "upper": (options.get("upper", (0,) * corners), corners),
    }  # fmt: skip
    for name, (values, wanted) in given.items():
        if len(values) != wanted:
            raise InputError(f"tensor map: {name} has {len(values)} elements, not {wanted}")
    return {name: _array(KINDS[name], values) for name, (values, _) in given.items()}


def _words(buffer: Buffer, options: TensorOptions) -> dict[str, Any]:
    """The fields that are one of several."""
    span, atom = _chosen("swizzle", options.get("swizzle", "none"), SWIZZLES)
    return {
        "kind": getattr(lib, f"PE_TENSOR_{_chosen('mode', options.get('mode', 'tiled'), MODES)}"),
        "type": getattr(lib, f"PE_TENSOR_{_chosen('type', options.get('type', buffer.dtype.name), TYPES)}"),
        "interleave": _chosen("interleave", options.get("interleave", "none"), INTERLEAVES),
        "fill": _chosen("fill", options.get("fill", "zeros"), FILLS),
        "swizzle": getattr(lib, f"PE_SWIZZLE_{span}"), "atomicity": getattr(lib, f"PE_ATOM_OF_{atom}"),
    }  # fmt: skip


def _contiguous(shape: Sequence[int], size: int) -> tuple[int, ...]:
    """The strides in bytes of an array without gaps, without the innermost."""
    return tuple(size * prod(shape[axis:]) for axis in range(1, len(shape)))


def _chosen(what: str, word: str, words: Mapping[str, Any]) -> Any:
    if word not in words:
        raise InputError(f"tensor map: there is no {what} '{word}'; there are {', '.join(words)}")
    return words[word]


def _array(kind: str, values: Sequence[int]) -> Any:
    """NumPy has the innermost axis last, a tensor map first."""
    try:
        return ffi.new(f"{kind}[]", [int(value) for value in reversed(values)])
    except OverflowError:
        raise InputError(f"tensor map: {max(values, key=abs)} is out of range") from None


def _number(value: int) -> int:
    if not 0 <= value < 1 << 32:
        raise InputError(f"tensor map: {value} is out of range")
    return value
