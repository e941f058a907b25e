"""What NVIDIA's assembler makes of instructions: those that are no single machine instruction, with what they are.

``python -m tests.clients.machine_code [--architectures sm_75,sm_80,...] [FILE ...]``: of the forms of ``tests/isa/FILE.ptx``
without memory, so many that each line and modifier is among them.  ``ptxas`` and ``nvdisasm`` are those of the PATH, such as
those of the packages ``nvidia-cuda-nvcc`` and ``nvidia-cuda-nvdisasm``.  Operands come from shared memory, and results go
there; these accesses and moves are left out.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.isa.forms import Form
from tests.isa.runner import read
from tests.support.places import ISA

ARCHITECTURES = ("sm_75", "sm_80", "sm_89", "sm_90", "sm_100")
VERSION = "8.8"
SHOWN = 14  # machine instructions of a longer sequence
HEAD = ".version {version}\n.target {target}\n.address_size 64\n.shared .align 16 .b8 frame[4096];\n"
LINE = re.compile(r"line (\d+);")
FUNCTION = re.compile(r"^\.text\.(\w+):", re.MULTILINE)
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(?P<operands>[^;]*)", re.MULTILINE)
CONSTANT = re.compile(r"\s*\w+, -RZ, RZ,")
"""What a multiplication by zero is for: its addend."""
FRAME = re.compile(
    r"(?:LDS|STS|U?MOV|IMAD\.MOV|HFMA2\.MOV|S2U?R|CS2R|ULEA|LEA|EXIT|BRA|NOP|U?LDC|LDCU|R2UR|UR2UP|WARPSYNC|BSYNC|BSSY|RET)\b"
)


def frame(number: int, form: Form) -> str:
    """An entry on one line: the form with operands that nobody knows, and results that are used."""
    parts = [f".visible .entry f{number}() {{ .reg .b32 %t0; .reg .b64 %l<2>; .reg .pred %p<2>;"]
    parts += [f".reg .{operand.register} %{operand.name};" for operand in form.operands]
    for place, operand in enumerate(form.operands):
        at, name = f"[frame+{16 * place}]", f"%{operand.name}"
        if operand.result:
            continue
        if operand.type == "pred":
            parts.append(f"ld.volatile.shared.b32 %t0, {at}; setp.ne.u32 {name}, %t0, 0;")
        else:
            parts.append(f"ld.volatile.shared.b{operand.bits} {name}, {at};")
    parts.append(f"{form.text};")
    for place, operand in enumerate(form.results):
        at, name = f"[frame+{2048 + 16 * place}]", f"%{operand.name}"
        if operand.type == "pred":
            parts.append(f"selp.b32 %t0, 1, 0, {name}; st.volatile.shared.b32 {at}, %t0;")
        else:
            parts.append(f"st.volatile.shared.{operand.register} {at}, {name};")
    return " ".join([*parts, "ret; }"])


def is_plain(form: Form) -> bool:
    text = form.text
    simple = all(not operand.is_memory and operand.bits < 128 and not operand.is_narrow for operand in form.operands)
    return simple and bool(form.results) and "[" not in text and not re.search(r"%(?:shared|local|t\d|l\d|w|p[01])\b", text)


class Assembler:
    def __init__(self, folder: Path) -> None:
        found = {name: shutil.which(name) for name in ("ptxas", "nvdisasm")}
        if missing := [name for name, path in found.items() if path is None]:
            raise SystemExit(f"not found: {', '.join(missing)}")
        self._paths = {name: str(path) for name, path in found.items()}
        self._text, self._code = folder / "module.ptx", folder / "module.cubin"

    def sequences(self, forms: list[Form], architecture: str) -> dict[str, list[str]]:
        """The machine instructions of each form that this architecture has, by its text."""
        left = dict(enumerate(forms))
        while left:
            lines = list(left)
            text = HEAD.format(version=VERSION, target=architecture)
            self._text.write_text(text + "\n".join(frame(number, left[number]) for number in lines))
            done = self._run("ptxas", "-O3", "-arch", architecture, "-o", str(self._code), str(self._text))
            if done.returncode == 0:
                code = self._run("nvdisasm", "-c", str(self._code)).stdout
                return {left[number].text: found for number, found in _functions(code)}
            wrong = {int(line) - text.count("\n") - 1 for line in LINE.findall(done.stderr + done.stdout)}
            bad = {lines[line] for line in wrong if 0 <= line < len(lines)}
            if not bad:
                raise SystemExit(f"ptxas for {architecture}: {done.stderr or done.stdout}")
            for number in bad:
                del left[number]
        return {}

    def _run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self._paths[name], *arguments], capture_output=True, text=True, check=False)


def _functions(code: str) -> Iterator[tuple[int, list[str]]]:
    pieces = FUNCTION.split(code)
    for name, body in zip(pieces[1::2], pieces[2::2]):
        if name.startswith("f"):
            found = [(match[1], match["operands"]) for match in INSTRUCTION.finditer(body)]
            yield int(name[1:]), [opcode for opcode, rest in found if not FRAME.match(opcode) and not CONSTANT.match(rest)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--architectures", default=",".join(ARCHITECTURES))
    given = parser.parse_args()
    total = several = 0
    with TemporaryDirectory() as folder:
        assembler = Assembler(Path(folder))
        for path in sorted(ISA.glob("*.ptx")):
            if given.files and path.stem not in given.files:
                continue
            forms = [form for form in read(path).chosen if is_plain(form)]
            found: dict[str, dict[str, str]] = {}
            for architecture in given.architectures.split(","):
                for text, opcodes in assembler.sequences(forms, architecture).items():
                    found.setdefault(text, {})[architecture] = shortened(opcodes) if len(opcodes) > 1 else ""
            total += len(found)
            for text, by in found.items():
                if any(by.values()):
                    several += 1
                    show(text, by)
    print(f"{total} forms, {several} of several machine instructions")
    return 0


def shortened(opcodes: list[str]) -> str:
    more = f" and {len(opcodes) - SHOWN} more" if len(opcodes) > SHOWN else ""
    return " ".join(opcodes[:SHOWN]) + more


def show(text: str, by: dict[str, str]) -> None:
    """Architectures with the same sequence on one line."""
    print(text)
    alike: dict[str, list[str]] = {}
    for architecture, sequence in by.items():
        alike.setdefault(sequence or "one", []).append(architecture)
    for sequence, architectures in alike.items():
        print(f"  {' '.join(architectures)}: {sequence}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
