"""What the runtime has found, with the lines of the program that it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxemu._runtime import ffi, lib
from ptxemu.checkers.findings import Finding, Other
from ptxemu.checkers.kinds import NAMES
from ptxemu.checkers.lines import Line, ProgramLines
from ptxemu.text.errors import Dim3

if TYPE_CHECKING:
    from ptxemu._runtime import CData


def finding_of(raw: CData, kernel: str, program: ProgramLines | None) -> Finding:
    """A ``pe_finding`` in a kernel of a program; nothing is known of the lines without it."""
    other = None if raw.other_pos == lib.PE_NO_POS else Other(_lines(program, raw.other_pos), *_place(raw.other))
    return Finding(
        NAMES[raw.check],
        ffi.string(raw.text).decode("utf-8", "replace"),
        kernel,
        _lines(program, raw.pos),
        *_place(raw.thread),
        raw.count,
        other,
        bool(raw.note),
    )


def _lines(program: ProgramLines | None, pos: int) -> tuple[Line, ...]:
    return () if program is None or pos == lib.PE_NO_POS else (*program.cuda(pos), program.ptx(pos))


def _place(raw: CData) -> tuple[Dim3, Dim3, int]:
    """Block, thread and warp."""
    block, thread = raw.ctaid, raw.tid
    return (block[0], block[1], block[2]), (thread[0], thread[1], thread[2]), raw.warp
