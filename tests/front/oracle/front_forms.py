# ruff: noqa: E501 (the cases are tables)
"""Instructions: valid ones, and every one-step mutation of them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from tests.front.oracle.front_cases import Case, line
from tests.support.row_forms import NEWEST

# One valid instruction of each form; the target they need where it is not sm_90.
FORMS = """
add.u32 %r1, %r2, %r3 | add.s64 %d1, %d2, 5 | add.sat.s32 %r1, %r2, %r3 | add.u16 %h1, %h2, %h3 | add.f32 %f1, %f2, %f3
add.rn.ftz.sat.f32 %f1, %f2, 0f3F800000 | add.rz.f64 %g1, %g2, %g3 | add.f16 %h1, %h2, %h3 | add.bf16x2 %r1, %r2, %r3
add.u16x2 %r1, %r2, %r3 | sub.u32 %r1, 7, %r3 | sub.f16x2 %r1, %r2, %r3 | sub.rn.f32 %f1, %f2, %f3 | add.f16x2 %ee1, %ee2, %ee3
add.cc.u32 %r1, %r2, %r3 | addc.u32 %r1, %r2, %r3 | addc.cc.u64 %d1, %d2, %d3 | sub.cc.s32 %r1, %r2, %r3 | subc.u32 %r1, %r2, 1
mul.lo.u32 %r1, %r2, %r3 | mul.hi.s64 %d1, %d2, %d3 | mul.wide.u32 %d1, %r2, %r3 | mul.wide.s16 %r1, %h2, %h3
mul.f32 %f1, %f2, %f3 | mul.rn.f64 %g1, %g2, 2.5 | mul.bf16 %h1, %h2, %h3 | mul24.lo.u32 %r1, %r2, %r3 | mul24.hi.s32 %r1, %r2, %r3
mad.lo.s32 %r1, %r2, %r3, %r4 | mad.wide.u32 %d1, %r2, %r3, %d4 | mad.hi.sat.s32 %r1, %r2, %r3, %r4 | mad.rn.f32 %f1, %f2, %f3, %f4
mad.lo.cc.u32 %r1, %r2, %r3, %r4 | madc.hi.cc.u32 %r1, %r2, %r3, %r4 | madc.lo.u32 %r1, %r2, %r3, %r4 | mad24.lo.u32 %r1, %r2, %r3, %r4
fma.rn.f32 %f1, %f2, %f3, %f4 | fma.rz.ftz.sat.f32 %f1, %f2, %f3, %f4 | fma.rn.f64 %g1, %g2, %g3, %g4 | fma.rn.f16 %h1, %h2, %h3, %h4
fma.rn.relu.bf16x2 %r1, %r2, %r3, %r4 | fma.rn.oob.f16x2 %r1, %r2, %r3, %r4 | sad.u32 %r1, %r2, %r3, %r4 | sad.s16 %h1, %h2, %h3, %h4
div.u32 %r1, %r2, %r3 | div.s64 %d1, %d2, %d3 | div.approx.ftz.f32 %f1, %f2, %f3 | div.full.f32 %f1, %f2, %f3
div.rn.f32 %f1, %f2, %f3 | div.rm.f64 %g1, %g2, %g3 | rem.u32 %r1, %r2, %r3 | rem.s16 %h1, %h2, %h3
abs.s32 %r1, %r2 | abs.ftz.f32 %f1, %f2 | abs.f16x2 %r1, %r2 | abs.bf16 %h1, %h2 | neg.s64 %d1, %d2 | neg.f64 %g1, %g2 | neg.f16 %h1, %h2
min.u32 %r1, %r2, %r3 | max.s16x2 %r1, %r2, %r3 | min.relu.s32 %r1, %r2, %r3 | max.ftz.NaN.f32 %f1, %f2, %f3
min.f64 %g1, %g2, %g3 | max.f16 %h1, %h2, %h3 | min.NaN.bf16x2 %r1, %r2, %r3 | max.NaN.xorsign.abs.f32 %f1, %f2, %f3
popc.b32 %r1, %r2 | clz.b64 %r1, %d2 | brev.b32 %r1, %r2 | bfind.shiftamt.u32 %r1, %r2 | bfind.s64 %r1, %d2 | fns.b32 %r1, %r2, %r3, %r4
bfe.u32 %r1, %r2, %r3, %r4 | bfe.s64 %d1, %d2, 3, 5 | bfi.b32 %r1, %r2, %r3, %r4, %r5 | bfi.b64 %d1, %d2, %d3, 1, 2
szext.clamp.s32 %r1, %r2, %r3 | bmsk.wrap.b32 %r1, %r2, %r3 | dp4a.u32.s32 %r1, %r2, %r3, %r4 | dp2a.lo.s32.u32 %r1, %r2, %r3, %r4
rcp.approx.f32 %f1, %f2 | rcp.rn.f64 %g1, %g2 | rcp.approx.ftz.f64 %g1, %g2 | sqrt.rn.f32 %f1, %f2 | sqrt.approx.ftz.f32 %f1, %f2
rsqrt.approx.f32 %f1, %f2 | rsqrt.approx.f64 %g1, %g2 | sin.approx.f32 %f1, %f2 | cos.approx.ftz.f32 %f1, %f2 | lg2.approx.f32 %f1, %f2
ex2.approx.f32 %f1, %f2 | ex2.approx.f16 %h1, %h2 | ex2.approx.ftz.bf16x2 %r1, %r2 | tanh.approx.f32 %f1, %f2 | tanh.approx.f16x2 %r1, %r2
copysign.f32 %f1, %f2, %f3 | testp.finite.f32 %p1, %f2 | testp.subnormal.f64 %p1, %g2
setp.eq.u32 %p1, %r2, %r3 | setp.lt.s32 %p1|%p2, %r2, 7 | setp.ge.and.f32 %p1, %f2, %f3, %p3 | setp.equ.ftz.f32 %p1, %f2, 0f00000000
setp.ne.b64 %p1, %d2, %d3 | setp.hi.u16 %p1, %h2, %h3 | setp.nan.f64 %p1, %g2, %g3 | setp.lt.f16x2 %p1|%p2, %r2, %r3
setp.gt.or.s32 %p1, %r2, %r3, !%p4 | setp.lt.bf16 %p1, %h2, %h3 | setp.eq.f16 %p1, %h2, %h3 | setp.xor.ne.s64 %p1, %d1, %d2, %p2
set.lt.u32.f32 %r1, %f2, %f3 | set.eq.and.s32.u32 %r1, %r2, %r3, %p1 | set.gt.f32.s32 %f1, %r2, %r3 | set.le.f16x2.f16x2 %r1, %r2, %r3
selp.b32 %r1, %r2, %r3, %p1 | selp.f64 %g1, %g2, 1.0, %p1 | selp.u16 %h1, 1, 2, %p1 | slct.u32.s32 %r1, %r2, %r3, %r4
slct.ftz.f32.f32 %f1, %f2, %f3, %f4 | slct.b64.f32 %d1, %d2, %d3, %f1
and.b32 %r1, %r2, %r3 | or.pred %p1, %p2, %p3 | xor.b64 %d1, %d2, 255 | not.b16 %h1, %h2 | not.pred %p1, %p2 | cnot.b32 %r1, %r2
lop3.b32 %r1, %r2, %r3, %r4, 0x3f | lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0x3f, %p2 | shf.l.wrap.b32 %r1, %r2, %r3, %r4
shl.b32 %r1, %r2, %r3 | shl.b64 %d1, %d2, 3 | shr.u16 %h1, %h2, %r3 | shr.s64 %d1, %d2, %r3 | prmt.b32 %r1, %r2, %r3, 0x5410 | prmt.b32.f4e %r1, %r2, %r3, %r4
mov.u32 %r1, %r2 | mov.b64 %d1, {%r1, %r2} | mov.b32 {%h1, %h2}, %r1 | mov.f32 %f1, 0f3F800000 | mov.pred %p1, %p2 | mov.u64 %d1, gbuf
mov.u32 %r1, sbuf | mov.u32 %r1, %tid.x | mov.u64 %d1, %clock64 | mov.b64 {%h1, %h2, %h3, %h4}, %d1 | mov.b128 %q1, {%d1, %d2} | mov.f64 %g1, 1.5
mov.u64 %d1, gbuf+16 | mov.b16 %h1, {%b1, %b2} | mov.b32 %r1, %f1 | mov.u16 %h1, 65535
cvt.u32.u16 %r1, %h1 | cvt.s64.s32 %d1, %r1 | cvt.rn.f32.u32 %f1, %r1 | cvt.rzi.s32.f32 %r1, %f1 | cvt.f64.f32 %g1, %f1
cvt.rn.f32.f64 %f1, %g1 | cvt.sat.u8.s32 %r1, %r2 | cvt.rn.f16.f32 %h1, %f1 | cvt.f32.f16 %f1, %h1 | cvt.rni.ftz.f32.f32 %f1, %f2
cvt.rn.bf16.f32 %h1, %f1 | cvt.rn.f16x2.f32 %r1, %f1, %f2 | cvt.rna.tf32.f32 %r1, %f1 | cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2
cvt.rn.f16x2.e4m3x2 %r1, %h1 | cvt.u8.u32 %b1, %r1 | cvt.rpi.u64.f64 %d1, %g1 | cvt.rn.relu.bf16x2.f32 %r1, %f1, %f2 | cvt.u32.u32 %r1, %r2
ld.global.u32 %r1, [%d1] | ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d1+16] | ld.shared.u8 %h1, [%r1] | ld.param.u64 %d1, [out]
ld.const.b32 %r1, [cbuf+4] | ld.local.f64 %g1, [lbuf] | ld.u32 %r1, [%d1] | ld.volatile.global.u32 %r1, [%d1] | ld.global.nc.b128 %q1, [%d1]
ld.relaxed.gpu.global.u32 %r1, [%d1] | ld.acquire.sys.u64 %d1, [%d2] | ld.global.ca.L2::128B.u32 %r1, [%d1] | ld.global.nc.u32 %r1, [%d1+-4]
ld.global.L1::no_allocate.u32 %r1, [%d1] | ld.global.L2::cache_hint.u32 %r1, [%d1], %d2 | ld.weak.shared::cta.u16 %h1, [sbuf+2] | ldu.global.u32 %r1, [%d1]
ld.shared::cluster.u32 %r1, [%r2] | ld.mmio.relaxed.sys.global.u32 %r1, [%d1] | ld.global.s8 %r1, [gbuf] | ld.global.v2.u64 {%d1, %d2}, [gbuf]
st.global.u32 [%d1], %r1 | st.global.v2.f64 [%d1], {%g1, %g2} | st.shared.b8 [sbuf], %h1 | st.local.u64 [lbuf+8], 5 | st.u16 [%d1], %h1
st.volatile.shared.f32 [%r1], %f1 | st.release.gpu.global.u32 [%d1], %r1 | st.global.cs.b64 [%d1], %d2 | st.global.wt.f32 [%d1], 1.0
st.global.L2::cache_hint.u32 [%d1], %r1, %d2 | st.shared::cluster.u32 [%r1], %r2 | st.weak.global.v4.b32 [%d1], {%r1, %r2, 0, 1}
prefetch.global.L1 [%d1] | prefetch.L2 [%d1] | prefetchu.L1 [%d1] | isspacep.global %p1, %d1 | cvta.global.u64 %d1, %d2 | cvta.to.shared.u64 %d1, %d2 | cvta.shared.u64 %d1, sbuf
prefetch.global.L2::evict_last [%d1] | applypriority.global.L2::evict_normal [%d1], 128 | discard.global.L2 [%d1], 128 | createpolicy.fractional.L2::evict_first.b64 %d1, 0.5
atom.global.add.u32 %r1, [%d1], %r2 | atom.shared.cas.b32 %r1, [%r2], %r3, %r4 | atom.add.f32 %f1, [%d1], %f2 | atom.global.exch.b64 %d1, [%d2], %d3
atom.acq_rel.gpu.global.inc.u32 %r1, [%d1], 5 | atom.global.min.s64 %d1, [%d2], %d3 | atom.add.noftz.f16x2 %r1, [%d1], %r2 | atom.global.v2.f32.add {%f1, %f2}, [%d1], {%f3, %f4}
red.global.add.u32 [%d1], %r2 | red.shared.max.s32 [sbuf], 4 | red.relaxed.sys.global.or.b32 [%d1], %r1 | red.global.add.f64 [%d1], %g1 | red.global.v4.f32.add [%d1], {%f1, %f2, %f3, %f4}
suld.b.2d.v2.b32.trap {%r1, %r2}, [surf, {%r3, %r4}] | sust.b.1d.b32.clamp [surf, {%r1}], %r2 | sured.b.add.1d.u32.zero [surf, {%r1}], %r2 | suq.width.b32 %r1, [surf]
suld.b.a2d.b64.zero %d1, [%d2, {%r1, %r2, %r3, %r4}] | sust.p.3d.v4.b32.trap [surf, {%r1, %r2, %r3, %r4}], {%r1, %r2, %r3, %r4} | istypep.surfref %p1, %d1
bar.sync 0 | bar.sync 1, 64 | bar.sync %r1, %r2 | bar.arrive 2, 64 | bar.red.popc.u32 %r1, 0, %p1 | bar.red.and.pred %p1, 1, 64, !%p2 | barrier.sync.aligned 0
barrier.cta.sync 3 | bar.warp.sync 0xffffffff | membar.gl | fence.acq_rel.gpu | fence.sc.sys | fence.proxy.async | barrier.cluster.arrive.release.aligned | barrier.cluster.wait
shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1 | shfl.sync.idx.b32 %r1, %r2, %r3, %r4, %r5 | vote.sync.any.pred %p1, %p2, -1 | vote.sync.ballot.b32 %r1, %p1, %r2
match.any.sync.b32 %r1, %r2, -1 | match.all.sync.b64 %r1|%p1, %d1, -1 | activemask.b32 %r1 | redux.sync.add.s32 %r1, %r2, -1 | redux.sync.xor.b32 %r1, %r2, %r3 | elect.sync %r1|%p1, -1 | nanosleep.u32 100
bra LX | exit | trap | brkpt | pmevent 3 | ret | griddepcontrol.wait | griddepcontrol.launch_dependents | setmaxnreg.inc.sync.aligned.u32 128
mbarrier.init.shared.b64 [sbuf], %r1 | mbarrier.arrive.shared.b64 %d1, [%r1] | mbarrier.test_wait.shared.b64 %p1, [%r1], %d1 | mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2
cp.async.ca.shared.global [%r1], [%d1], 16 | cp.async.commit_group | cp.async.wait_group 1 | cp.async.wait_all | cp.async.bulk.commit_group | mapa.shared::cluster.u32 %r1, %r2, %r3 | getctarank.u32 %r1, %d1
vadd.u32.u32.u32 %r1, %r2, %r3 | vabsdiff4.u32.u32.u32.add %r1, %r2, %r3, %r4 | ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5] | movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4} | alloca.u64 %d1, 64, 16 | stacksave.u64 %d1 | stackrestore.u64 %d1
"""  # fmt: skip

TYPES = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "b128", "f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "pred", "u16x2", "s16x2", "tf32", "f32x2", "e4m3x2"]  # fmt: skip
MODIFIERS = ["rn", "rz", "rm", "rni", "rzi", "ftz", "sat", "cc", "lo", "hi", "wide", "approx", "full", "relu", "NaN", "abs", "v2", "v4", "v8", "global", "shared", "local", "const", "param", "volatile", "relaxed", "acquire", "release", "weak", "cta", "gpu", "sys", "cluster", "ca", "cg", "cs", "wb", "L1", "L2", "nc", "eq", "lt", "ltu", "lo", "and", "or", "xor", "add", "exch", "trap", "clamp", "zero", "wrap", "1d", "2d", "sync", "aligned", "uni", "to", "noftz", "satfinite", "L1::evict_last", "L2::cache_hint", "shared::cta", "shared::cluster", "L2::64B"]  # fmt: skip
OPERANDS = ["%p1", "!%p1", "%b1", "%h1", "%r1", "%d1", "%q1", "%hu1", "%hs1", "%u1", "%s1", "%du1", "%ds1", "%e1", "%ee1", "%f1", "%g1", "%v2r", "%v2r.x", "%v4f", "1", "0", "-1", "255", "65536", "0x1ffffffff", "0xffffffffffffffff", "1U", "1.5", "0f3F800000", "0d3FF0000000000000", "_", "{%r1,%r2}", "{%r1}", "{%f1,%f2}", "{%h1,%h2}", "{%r1,%r2,%r3,%r4}", "{_,%r2}", "[%d1]", "[%r1]", "[gbuf]", "[sbuf]", "[cbuf]", "[lbuf]", "[out]", "[n]", "[n+1]", "gbuf", "sbuf", "gbuf+4", "surf", "[surf]", "[surf,{%r1}]", "out", "%tid.x", "%tid", "%laneid", "%clock64", "WARP_SZ", "%nosuch", "nosuch", "[nosuch]", "-%r1", "!%r1", "[64]", "[%d1+%d2]", "%r1|%p1", "%p1|%p2", "[%d1+4]", "[%d1-4]", "[%f1]", "k", "gbuf[0]", "[gbuf+300]", "%pm0", "%envreg3", "[%h1]"]  # fmt: skip
VERSIONS = [
    "1.0",
    "1.4",
    "2.0",
    "3.1",
    "4.1",
    "4.3",
    "5.0",
    "6.0",
    "6.2",
    "6.3",
    "6.4",
    "7.0",
    "7.1",
    "7.4",
    "7.8",
    "8.0",
    "8.1",
    "8.3",
    "8.6",
    "8.8",
    "9.0",
    NEWEST,
]
TARGETS = [
    "sm_50",
    "sm_53",
    "sm_60",
    "sm_61",
    "sm_70",
    "sm_72",
    "sm_75",
    "sm_80",
    "sm_86",
    "sm_87",
    "sm_89",
    "sm_90",
    "sm_100",
    "sm_103",
    "sm_120",
]
COMMA = re.compile(r",\s*(?![^{\[]*[}\]])")

Parts = tuple[str, list[str], list[str]]


def forms() -> list[str]:
    return [form.strip() for row in FORMS.strip().splitlines() for form in row.split(" | ")]


def split(form: str) -> Parts:
    """Opcode, modifiers, operands."""
    head, _, tail = form.partition(" ")
    opcode, *modifiers = head.split(".")
    return opcode, modifiers, COMMA.split(tail) if tail else []


def join(opcode: str, modifiers: list[str], operands: list[str]) -> str:
    words = ".".join([opcode, *modifiers])
    return f"{words} {', '.join(operands)};" if operands else words + ";"


def written(form: str) -> str:
    """The instruction with its label, if it needs one."""
    return f"{form}\n    LX:" if "LX" in form else form


def counts(form: str) -> Iterator[Case]:
    opcode, modifiers, operands = split(form)
    yield line("operand count", f"extra {form}", written(join(opcode, modifiers, [*operands, "%r7"])))
    for index in range(len(operands)):
        fewer = operands[:index] + operands[index + 1 :]
        yield line("operand count", f"without {index} {form}", written(join(opcode, modifiers, fewer)))


def operands(form: str) -> Iterator[Case]:
    opcode, modifiers, given = split(form)
    for index in range(len(given)):
        for other in OPERANDS:
            changed = [*given[:index], other, *given[index + 1 :]]
            yield line(_operand_rule(other), f"{other} in {index} {form}", written(join(opcode, modifiers, changed)))


def _operand_rule(other: str) -> str:
    if other.startswith("["):
        return "address forms"
    if other.startswith("{") or "%v" in other:
        return "vectors"
    if other.lstrip("-")[0].isdigit():
        return "immediates"
    if other.lstrip("!").startswith("%p"):
        return "guards and predicates"
    return "operand types"


def modifiers(form: str) -> Iterator[Case]:
    opcode, words, given = split(form)
    for index, word in enumerate(words):
        rest = words[:index] + words[index + 1 :]
        yield line("modifiers missing", f"no .{word} {form}", written(join(opcode, rest, given)))
        yield line(
            "modifiers repeated", f".{word} twice {form}", written(join(opcode, [*words[:index], word, *words[index:]], given))
        )
        yield line(
            "modifiers unknown",
            f".{word}x {form}",
            written(join(opcode, [*words[:index], word + "x", *words[index + 1 :]], given)),
        )
        if index:
            swapped = [*words[: index - 1], word, words[index - 1], *words[index + 1 :]]
            yield line("modifiers order", f"{index} first {form}", written(join(opcode, swapped, given)))
        for other in TYPES if word in TYPES else MODIFIERS:
            changed = [*words[:index], other, *words[index + 1 :]]
            yield line("modifiers changed", f".{other} for .{word} {form}", written(join(opcode, changed, given)))
    for other in MODIFIERS:
        yield line("modifiers in conflict", f"with .{other} {form}", written(join(opcode, [other, *words], given)))


def gates(form: str) -> Iterator[Case]:
    for version in VERSIONS:
        yield line("version gates", f"PTX {version} {form}", written(form + ";"), version=version, target="sm_90")
    for target in TARGETS:
        yield line("target gates", f"{target} {form}", written(form + ";"), target=target)


def guards(form: str) -> Iterator[Case]:
    for guard in ("@%p1", "@!%p1", "@%r1", "@%nosuch", "@!%d1", "@p", "@%p1 @%p2", "@-%p1", "@1"):
        yield line("guards and predicates", f"{guard} {form}", written(f"{guard} {form};"))


def shifted_types(form: str) -> Iterator[Case]:
    """Every type in place of a type, with registers of the type's own width: the forms that exist."""
    opcode, words, given = split(form)
    places = [index for index, word in enumerate(words) if word in TYPES]
    for index in places:
        for other in TYPES:
            bank = _bank(other)
            banked = [item if "[" in item else re.sub(r"%[a-z]+(\d)", rf"{bank}\1", item) for item in given]
            words_now = [*words[:index], other, *words[index + 1 :]]
            yield line("types", f".{other} all of {form}", written(join(opcode, words_now, banked)))


def _bank(kind: str) -> str:
    if kind in ("f32", "f64", "pred"):
        return {"f32": "%f", "f64": "%g", "pred": "%p"}[kind]
    bits = "32" if kind.endswith("x2") and kind not in ("f32x2", "e4m3x2") else kind
    return {"8": "%h", "16": "%h", "32": "%r", "64": "%d", "128": "%q"}.get(re.sub(r"^\D+", "", bits).partition("x")[0], "%r")


def mutations(seed: int, count: int) -> list[Case]:
    """A sample of every mutation: as many of each rule class as it is large, but no class small."""
    makers = (counts, operands, modifiers, gates, guards, shifted_types)
    groups: dict[str, list[Case]] = {}
    for form in forms():
        groups.setdefault("valid", []).append(line("valid", form, written(form + ";")))
        for maker in makers:
            for case in maker(form):
                groups.setdefault(case.rule, []).append(case)
    chosen = []
    random_number = random.Random(seed)
    for cases in groups.values():
        chosen += random_number.sample(cases, min(len(cases), max(40, count // len(groups))))
    return chosen
