"""What NVIDIA's assembler makes of instructions that are no single machine instruction, and whether that computes the same.

``python -m tests.clients.machine_code [--architectures sm_75,sm_80,...] [--all] [FILE ...]``: of the forms of
``tests/isa/FILE.ptx`` without memory, so many that each line and modifier is among them, or all. ``ptxas`` and ``nvdisasm``
are those of the PATH, such as those of the packages ``nvidia-cuda-nvcc`` and ``nvidia-cuda-nvdisasm``.  The exit code is 1 if
a sequence computes something else.

Each sequence is run by a model (``tests/support/machine``) on the operands of the ISA tests, edges and random ones, and its
results are compared with ptxemu's for an architecture. ``--list`` shows the sequences; else those that are not known to
be equal are shown. ``--page`` writes ``docs/compositions.md``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.isa.forms import Form
from tests.isa.runner import File, computed, in_kernels, read
from tests.support.machine.assembler import Assembler, is_plain
from tests.support.machine.judge import NOT_MODELLED, Judged
from tests.support.places import DOCS, ISA

ARCHITECTURES = ("sm_75", "sm_80", "sm_89", "sm_90", "sm_100")
LIKE = "sm_90"  # what ptxemu computes for; these instructions are alike for all
SHOWN = 14  # machine instructions of a longer sequence
EQUAL, DIFFERENT, WRONG, UNKNOWN = "equal", "different", "not the manual's", "not evaluated"
KINDS = (EQUAL, DIFFERENT, WRONG, UNKNOWN)
MISSED = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset", "vshl", "vshr", "vmad")
"""Whose sequences are known to miss what the manual defines (docs/semantics.md)."""

HEAD = """# Compositions

What NVIDIA's assembler makes of several machine instructions, and whether these compute what ptxemu does: written by
`python -m tests.clients.machine_code --page`, with ptxas {version}, for the forms of the ISA tests without memory that
together have each line and modifier, on sm_75, 80, 89, 90 and 100. Each sequence ran on a model in exact arithmetic
(`tests/support/machine`), on 192 operands, edges of all types and random ones; `MUFU` of f32 is the published model.
[Semantics](semantics.md#hardware-against-the-manual) says where the manual leaves a choice or is not followed.

{summary}.

* *equal*: on all architectures that have the form;
* *not the manual's*: the assembler's sequence misses what the manual defines, which ptxemu follows;
* *not evaluated*: instructions whose bits nobody has published.

"""


@dataclass
class Found:
    """A form: its sequence, if it is one, and the verdict, for each architecture that has it."""

    opcode: str
    text: str
    sequences: dict[str, str] = field(default_factory=dict)
    verdicts: dict[str, str] = field(default_factory=dict)

    @property
    def is_composed(self) -> bool:
        return any(self.sequences.values())

    @property
    def kind(self) -> str:
        verdicts = self.verdicts.values()
        if any(verdict and not verdict.startswith(NOT_MODELLED) for verdict in verdicts):
            return WRONG if self.opcode in MISSED else DIFFERENT
        return UNKNOWN if any(verdicts) else EQUAL


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--architectures", default=",".join(ARCHITECTURES))
    parser.add_argument("--all", action="store_true", help="all forms")
    parser.add_argument("--list", action="store_true", help="show the sequences")
    parser.add_argument("--page", action="store_true", help="write the document")
    given = parser.parse_args()
    files = [read(path) for path in sorted(ISA.glob("*.ptx")) if not given.files or path.stem in given.files]
    found: list[Found] = []
    with TemporaryDirectory() as folder:
        assembler = Assembler(Path(folder))
        for file in files:
            found += judged(assembler, file, file.forms if given.all else file.chosen, given.architectures.split(","))
    composed = [one for one in found if one.is_composed]
    for one in composed:
        if given.list or one.kind != EQUAL:
            show(one, given.list)
    kinds = Counter(one.kind for one in composed)
    counted = ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS)
    summary = f"{len(found)} forms, {len(composed)} of several machine instructions: {counted}"
    if given.page:
        (DOCS / "compositions.md").write_text(HEAD.format(version=assembler.version, summary=summary) + table(composed))
    print(summary)
    return 1 if kinds[DIFFERENT] else 0


def judged(assembler: Assembler, file: File, forms: list[Form], architectures: list[str]) -> Iterator[Found]:
    for group in in_kernels([form for form in forms if is_plain(form)], 64):
        known = [Judged(form, results) for form, results in zip(group, computed(file, group, LIKE), strict=True)]
        found = [Found(file.path.stem, form.text) for form in group]
        for architecture in architectures:
            for number, sequence in assembler.sequences(group, architecture).items():
                opcodes = sequence.opcodes
                found[number].sequences[architecture] = shortened(opcodes) if len(opcodes) > 1 else ""
                found[number].verdicts[architecture] = known[number].verdict(sequence)
        yield from (one for one in found if one.verdicts)


def shortened(opcodes: list[str]) -> str:
    more = f" and {len(opcodes) - SHOWN} more" if len(opcodes) > SHOWN else ""
    return " ".join(opcodes[:SHOWN]) + more


def show(found: Found, whole: bool) -> None:
    """Architectures with the same sequence and verdict on one line."""
    print(found.text)
    alike: dict[tuple[str, str], list[str]] = {}
    for architecture, sequence in found.sequences.items():
        alike.setdefault((sequence or "one", found.verdicts[architecture] or EQUAL), []).append(architecture)
    for (sequence, verdict), architectures in alike.items():
        print(f"  {' '.join(architectures)}: {sequence if whole else ''}\n    {verdict}", flush=True)


def table(composed: list[Found]) -> str:
    """A line for each opcode: how many forms are of each kind, and why some were not evaluated."""
    lines = [f"| opcode | {' | '.join(KINDS)} | because of |", "|---|---|---|---|---|---|"]
    for opcode in sorted({one.opcode for one in composed}):
        forms = [one for one in composed if one.opcode == opcode]
        kinds = Counter(one.kind for one in forms)
        verdicts = {verdict for one in forms for verdict in one.verdicts.values()}
        reasons = sorted({verdict.removeprefix(NOT_MODELLED) for verdict in verdicts if verdict.startswith(NOT_MODELLED)})
        counts = " | ".join(str(kinds[kind] or "") for kind in KINDS)
        lines.append(f"| `{opcode}` | {counts} | {', '.join(f'`{reason}`' for reason in reasons)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
