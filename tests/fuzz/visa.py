"""What the fuzz target of vISA changes and does; :mod:`tests.fuzz.dialects` runs it."""

from __future__ import annotations

import random

import ptxemu
from ptxemu.dialects.visa.encoding import decode
from ptxemu.text.errors import Error, InputError
from tests.fuzz.dialects import Target, device, launch, lint

PIECES = [
    *"{}()[]<>,;:.@!+-=`'\"#&?~_%\\\0\r\n\t é", "V0", "T0", "T252", "P1", "(P1) ", "(!P1.any) ", "goto", "ret", "jmp", "movs",
    "setp", "mad", "sel", "M1", "M8_NM", "NoMask", ", 8)", "16", "0", "-1", "4294967296", "99999999999999999999999:ud", ":vf",
    ":hf", ":df", ":q", ".16", "<0;1,0>", "<1>", "(abs)", "(-)", "(~)", "T6(0)", "V40(0,0)<1;1,0>", "V40(31,31)<1>", "1e400:f",
    "1e-400:df", "nan:f", "0x", "/*", "*/", "//", "%null.0", "%local_id_x", "alias=<V40, 3>", "num_elts=",
    "\ngoto (M1, 8) LOOP\n", "\n(P1) goto (M1, 1) DONE\n", "\njmp (M1, 1) LOOP\n", "\nret (M3, 8)\n", "\nx:\n", "\n.kernel k\n",
    "\n.slot 1 small\n", "\n.em 0\n", "\n.kernel_attr SimdSize=16\n", "\n.input T6\n", "\n.in V40 more\n", "\n.out P1 bits\n",
]  # fmt: skip
OPTIONS: list[dict[str, str]] = [
    {}, {"half_result": "sign"}, {"surplus_coordinate": "ignore", "missing_coordinate": "zero"}, {"raw_alignment": "register"},
]  # fmt: skip


def check_code(rng: random.Random) -> None:
    """Bytes decode to a text, or are refused."""
    code = bytearray(rng.randbytes(48))
    code[0] = 0x73
    code[1] &= rng.choice((0x3F, 0xFF))
    code[2] &= rng.choice((0xF3, 0xFF))
    try:
        assert decode(bytes(code)).count(" ") >= 9
    except InputError:
        return


def check(rng: random.Random, text: str) -> bool:
    """Decode, lint and, if it is a program, run a text with four threads."""
    check_code(rng)
    lint(text, "visa", strict=rng.random() < 0.3)
    try:
        module = ptxemu.loads(text, dialect="visa", device=device(), opt=0, options=rng.choice(OPTIONS))
        surface = device().surface((4, 8), format="R32_UINT")
        for name in module.info.handles if rng.random() < 0.8 else ():
            module.bind(name, surface)
        launch(module, 1, 4)
    except Error:
        return False
    return True


TARGET = Target("visa", PIECES, check)
