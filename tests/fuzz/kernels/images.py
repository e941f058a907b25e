"""Surfaces and textures of random kernels."""

from __future__ import annotations

from tests.fuzz.kernels.writer import Scope, Writer, in_kernels, statement

WIDTH, OWN_ROWS, LEVELS = 64, 8, 4  # texels of a row; rows of one level, in which each thread of a grid has a texel
REDUCE = ["add.u32", "min.u32", "max.s32", "and.b32", "or.b32"]  # of the rows behind
HEIGHT = OWN_ROWS * LEVELS + len(REDUCE)
SCENE = 16  # width and height of what is only read
CLAMPS = ("trap", "clamp", "zero")


@statement(8, in_kernels, "surfaces")
def own_texel(w: Writer, scope: Scope, depth: int) -> None:
    """Of the surface that threads share, in parts."""
    guard, clamp, size = w.guard(), w.pick(*CLAMPS), w.random.choice([8, 16, 32, 32])
    byte, row = w.random.randrange(0, 4, size // 8), OWN_ROWS * w.random.randrange(LEVELS)
    w.emit("and.b32 %x0, %t1, 63; shl.b32 %x0, %x0, 2; shr.u32 %x1, %t1, 6;")
    w.emit(f"add.u32 %x0, %x0, {byte}; add.u32 %x1, %x1, {row};")
    register = w.narrow() if size < 32 else w.register()
    if w.chance(0.5):
        w.emit(f"{guard}sust.b.2d.b{size}.{clamp} [%image, {{%x0, %x1}}], {register};")
    else:
        w.emit(f"{guard}suld.b.2d.b{size}.{clamp} {register}, [%image, {{%x0, %x1}}];")


@statement(3, in_kernels, "surfaces")
def reduced_texel(w: Writer, scope: Scope, depth: int) -> None:
    """Each row has one operation."""
    row, guard = w.random.randrange(len(REDUCE)), w.guard()
    w.emit(f"and.b32 %x0, {w.register()}, {4 * WIDTH - 4}; mov.u32 %x1, {OWN_ROWS * LEVELS + row};")
    w.emit(f"{guard}sured.b.2d.{REDUCE[row]}.{w.pick(*CLAMPS)} [%image, {{%x0, %x1}}], {w.register()};")


@statement(4, in_kernels, "surfaces")
def any_texel(w: Writer, scope: Scope, depth: int) -> None:
    """Of the surface that is only read, inside or outside."""
    if w.chance(0.2):
        w.emit(f"{w.guard()}suq.{w.pick('width', 'height')}.b32 {w.register()}, [%scene];")
        return
    near, guard = w.chance(0.7), w.guard()
    w.emit(f"and.b32 %x0, {w.register()}, {4 * SCENE - 4 if near else 0xFFFFFFF8};")
    w.emit(f"and.b32 %x1, {w.register()}, {SCENE - 1 if near else 0xFFFFFFFF};")
    clamp = w.pick(*CLAMPS) if near else w.pick(*CLAMPS[1:])
    if w.chance(0.5):
        w.emit(f"{guard}suld.b.2d.b32.{clamp} {w.register()}, [%scene, {{%x0, %x1}}];")
    else:
        w.emit(f"{guard}suld.b.2d.v4.b8.{clamp} {{%h0, %h1, %h2, %h3}}, [%scene, {{%x0, %x1}}];")


@statement(6, in_kernels, "textures")
def texel(w: Writer, scope: Scope, depth: int) -> None:
    kind, guard = w.random.random(), w.guard()
    a, b, c, d = w.random.sample(range(4), 4)
    results = f"{{%f{a}, %f{b}, %f{c}, %f{d}}}"
    if kind < 0.1:
        w.emit(f"{guard}txq.{w.pick('width', 'height')}.b32 {w.register()}, [%picture];")
        return
    if w.chance(0.7):  # near the texels
        w.emit(f"and.b32 %x0, {w.register()}, 63; cvt.rn.f32.u32 %e0, %x0; mul.f32 %e0, %e0, 0f3C800000;")
        w.emit(f"and.b32 %x1, {w.register()}, 127; cvt.rn.f32.u32 %e1, %x1; mul.f32 %e1, %e1, 0f3C800000;")
    else:
        w.emit(f"mov.b32 %e0, {w.float()}; mov.b32 %e1, {w.float()};")
    if kind < 0.6:
        w.emit(f"{guard}tex.2d.v4.f32.f32 {results}, [%picture, {{%e0, %e1}}];")
    elif kind < 0.7:
        w.emit(f"{guard}tex.level.2d.v4.f32.f32 {results}, [%picture, {{%e0, %e1}}], %e1;")
    elif kind < 0.8:
        w.emit(f"{guard}tex.grad.2d.v4.f32.f32 {results}, [%picture, {{%e0, %e1}}], {{%e0, %e1}}, {{%e1, %e0}};")
    else:
        w.emit(f"{guard}tld4.{w.pick('r', 'g', 'b', 'a')}.2d.v4.f32.f32 {results}, [%picture, {{%e0, %e1}}];")
