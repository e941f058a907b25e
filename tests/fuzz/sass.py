"""What the fuzz target of SASS changes and does; :mod:`tests.fuzz.dialects` runs it.

Words are those of instructions with some bits inverted.
"""

from __future__ import annotations

import random
import re

import ptxemu
from ptxemu.dialects.sass.encoding import decode
from ptxemu.dialects.sass.listing import assemble
from ptxemu.text.errors import Diagnostics, Error, InputError
from ptxemu.text.source import SourceFile
from tests.fuzz.dialects import Target, device, launch, lint

PIECES = [
    *"{}()[],;:.@!+-=`'\"#&?~_\\\0\r\n\t é", "RZ", "PT", "R0", "R3", "R254", "R255", "P0", "P7", "!P0", ".CC",
    "SR_TID.X", "-1", "0x", "0xffffffff", "99999999999999999999",
    "c[0x0][0x8]", "c[0x0][0x140]", "c[17][0xfffc]", "c[99][4]", "/*", "*/", "//", "{&req_6}",
    "&req={0,1}", "?sched", ".E", ".BA", ".1D", ".3D", ".2D_ARRAY", ".1D_BUFFER", ".SD32", ".U64", ".F16x2.RN", ".F32.FTZ.RN",
    ".IGN", ".TRAP", ".NEAR", ".P",
    "\nRED.ADD [R4], R5\n", "\nSURED.D.1D.ADD [R4], R5, R6\n", "@P0 ", "@!PT ", "\nBRA x\n", "\nx:\n", "\nEXIT\n",
    "\n.kernel k\n", "\n.param u32 n\n", "\n.param ptr p 0x148\n", "\n.const c[0x0][0x20] = 5\n", "\n.bank 3\n",
    "\n.helper 0xff\n", "\n.in R1 a\n", "\n.out R1 b\n", "\n.header 9 q\n", "\n.maxheader 0\n",
]  # fmt: skip
WORDS = (0xEB58052602970407, 0xEB50050602870407, 0xEBF9FFE700980406, 0xEBF9000000670204)


def check_words(rng: random.Random) -> None:
    """A word decodes to a text that, if it is legal, has that word; or it is refused."""
    word = rng.choice(WORDS)
    for _ in range(rng.randint(1, 12)):
        word ^= 1 << rng.randrange(53 if rng.random() < 0.9 else 64)
    try:
        text = decode(word)
    except InputError:
        return
    source = SourceFile("<word>", text)
    diagnostics = Diagnostics(source)
    for _, again in assemble(source, diagnostics):
        assert again == word, (hex(word), text)


def check(rng: random.Random, text: str) -> bool:
    """Lint, assemble and, if it is a program, run a text with four threads."""
    check_words(rng)
    lint(text, "sass")
    source = SourceFile("<fuzz>", text)
    for _, word in assemble(source, Diagnostics(source)):
        if word is not None:
            assert decode(word)
    try:
        module = ptxemu.loads(text, dialect="sass", device=device(), opt=0)
        surface = device().surface((4, 8), format="R32_UINT")
        for name in re.findall(r"\.header\s+\w+\s+(\w+)", text):
            module.bind(name, surface)
        launch(module, 1, 4)
    except Error:
        return False
    return True


TARGET = Target("sass", PIECES, check)
