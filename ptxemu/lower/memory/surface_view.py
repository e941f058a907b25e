"""What compiled code sees of a surface: its ``pe_surface_view``, by which it tests coordinates and finds texels by itself."""

from __future__ import annotations

from ptxemu._runtime import ffi, lib
from ptxemu.ir.geometry import GEOMETRIES, LAYER
from ptxemu.ir.observed import tells_texels
from ptxemu.lower.core.context import Context

EXTENTS = {"x": "row", "y": "height", "z": "depth", LAYER: "layers"}
"""Fields that coordinates are compared with, by their letters."""
STRIDES = {"y": "pitch", "z": "slice_stride", LAYER: "layer_stride"}
PLAIN = ("1d", "2d", "3d", "a1d", "a2d")
"""Geometries whose coordinates are what they are called."""


def address(ctx: Context, geometry: str, handle: str, plain: bool = False) -> str:
    """Of the view of a surface with a handle, an i64. Nothing is inside a surface that has another geometry, or none; nor, if
    ``plain``, where lanes outside may have texels."""
    code = str(getattr(lib, GEOMETRIES[geometry].constant))
    kind = "plain" if plain else "watched" if tells_texels(ctx.unit.observed) else ""
    name = f"pe_surface_{kind}_view_of" if kind else "pe_surface_view_of"
    arguments = (("ptr", ctx.any_warp), ("i64", handle), ("i32", code))
    return ctx.kept(
        f"{kind} view {handle} {code}",
        lambda: ctx.call("ptr", name, *arguments, attributes="nounwind willreturn speculatable memory(none)"),
    )


def field(ctx: Context, view: str, name: str) -> str:
    """i64: a field of a view."""

    def load() -> str:
        pointer = ctx.inst(f"getelementptr i8, ptr {view}, i64 {ffi.offsetof('pe_surface_view', name)}")
        return ctx.inst(f"load i64, ptr {pointer}, align 8, !invariant.load !2")

    return ctx.kept(f"{name} {view}", load)
