"""What the fuzz target of CTM changes and does; :mod:`tests.fuzz.dialects` runs it."""

from __future__ import annotations

import random
import re
from functools import cache

import ptxemu
from ptxemu.text.errors import Error
from tests.fuzz.dialects import Target, device, launch, lint

PROGRAMS = [
    """.kernel k umrt
.domain 1 0 3 2
.output A a
.input 0 b LINEAR_INP_2X2
.point r0
.constants cs
TEX r1, r0, inp0
ALU RGB MAD.OMOD_D2.CLAMP.PRED_OP_LESS.PRED_SEL_RRRR.PRED_INV r0.rg|pred.b, r1.rrr, -r2, |r3|; ALPHA MIN.OMOD_DISABLED r4, c1, c0
OUTPUT MOV.RNDR_TGT_UMRT_SAME_IDX_TEX_SEM_ACQUIRE.PRED_SEL_AAAA out, r4
""",
    """.kernel k cached
.output A a
.output B b
.in r0 values
.out pred bits
.conditional c
.set_cond_test 3
.set_cond_loc 1
.set_cond_out_mask 0
.engine_value -2.5
.set_out_mask 0x7
ALU ADD.PRED_OP_EQUAL pred, r0, -r1
OUTPUT RGB CND.RNDR_TGT_A.PRED_SEL_GGGG out.r, r0, r1, r2; ALPHA MOV.W_OMASK.RNDR_TGT_B r5|out, 1
OUTPUT NOP
""",
]
PIECES = [
    *"|,;-=.#\0é²٣", "||", "--", "..", ".r.", "r0.", "0", "-1", "1e99", "0x", "0f7fc00000", "99999999999999999999", "nan", "inf",
    "c255", "c256", "r127", "r128", "inp15", "inp16", "pred", "out", "none", "ALU", "OUTPUT", "RGB", "ALPHA", "TEX", "NOP", "MAX",
    "RNDR_TGT_D", "OMOD_DISABLED", "CLAMP", "W_OMASK", "PRED_OP_EQUAL", "PRED_SEL_BBBB", "RNDR_TGT_UMRT_SAME_IDX", "umrt",
    "cached",     "\n.kernel k2 umrt\n", "\n.domain 0 0 4095 4095\n", "\n.in r0 q\n", "\n.out pred z\n",
    "\n.const c1 = 1 2 3 4\n", "\r\n",
    "\n.input 1 a TILED\n", "\n.output C c\n", "\n.set_out_mask 16\n", "\nOUTPUT MOV.RNDR_TGT_A out, 1\n", "/*", "*/", "//",
    "\ufeff",
]  # fmt: skip
FORMATS = ("R32_FLOAT", "R32_FLOAT", "R32G32_FLOAT", "R32G32B32A32_FLOAT", "R8G8B8A8_UNORM", "R16_UNORM", "R32_UINT")


@cache
def surface(format: str) -> ptxemu.SurfaceObject:
    return device().surface((3, 4), format=format)


def check(rng: random.Random, text: str) -> bool:
    """Lint and, if it is a program, run a text with sixteen points."""
    strict = rng.random() < 0.3
    lint(text, "ctm", strict)
    try:
        module = ptxemu.loads(text, dialect="ctm", device=device(), strict=strict, opt=0, options={"tiling": "ignore"})
        for name in set(re.findall(r"\.(?:input\s+\d+|output\s+\w|conditional)\s+(\w+)", text)):
            module.bind(name, surface(rng.choice(FORMATS)))
        launch(module, (1, 2), 8)
    except Error:
        return False
    return True


TARGET = Target("ctm", PIECES, check, PROGRAMS)
