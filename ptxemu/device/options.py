"""The options of surfaces, textures and samplers, as type checkers and editors know them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

Filter = Literal["point", "linear"]
AddressMode = Literal["wrap", "clamp", "mirror", "border"]


class LayoutOptions(TypedDict, total=False):
    """How texels lie in memory: mip levels, bytes of strides, and the block-linear layout."""

    levels: int
    pitch: int
    slice_stride: int
    layer_stride: int
    pitch_align: int
    block_height_log2: int
    block_depth_log2: int
    gob_order: Literal["swizzled", "linear"]


class SurfaceOptions(LayoutOptions, total=False):
    """Those of :class:`ptxemu.device.surface.Surface`."""

    enum_family: str
    queries: Mapping[str, int]
    enabled: bool
    address: int
    size: int
    name: str


class SamplerOptions(TypedDict, total=False):
    """Those of :class:`ptxemu.device.texture.SamplerState`: how coordinates become texels."""

    filter: Filter
    address: AddressMode | Sequence[AddressMode]
    normalized: bool
    mip_filter: Filter
    mip_bias: float
    min_level: float
    max_level: float
    border: Sequence[float]
    seamless: bool
    max_anisotropy: int


class TextureOptions(SamplerOptions, LayoutOptions, total=False):
    """Those of samplers, what a fetch returns, and how the memory lies, as for surfaces."""

    read_mode: Literal["element", "normalized_float"]
    srgb: bool
    layout: Literal["linear", "pitch", "block_linear"]
    name: str


class TensorOptions(TypedDict, total=False):
    """How copies go through a tensor, and what lies where; axes are NumPy's."""

    steps: Sequence[int]
    swizzle: Literal["none", "32B", "64B", "96B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B"]
    fill: Literal["zeros", "nan"]
    type: str
    shape: Sequence[int]
    strides: Sequence[int]
    interleave: Literal["none", "16B", "32B"]
    mode: Literal["tiled", "im2col", "im2col_w", "im2col_w128"]
    lower: Sequence[int]
    upper: Sequence[int]
    channels: int
    pixels: int
