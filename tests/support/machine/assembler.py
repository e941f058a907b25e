"""NVIDIA's assembler: the machine code of forms, each in an entry with operands and results in shared memory."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tests.isa.forms import Form
from tests.support.machine.text import Function, Instruction, functions

VERSION = "8.8"
HEAD = ".version {version}\n.target {target}\n.address_size 64\n.shared .align 16 .b8 frame[4096];\n"
LINE = re.compile(r"line (\d+);")
BANK = re.compile(r"\.nv\.constant(\d)\.(\w+)")
MOVES = re.compile(
    r"(?:LDS|STS|U?MOV|IMAD\.MOV|HFMA2\.MOV|S2U?R|CS2R|ULEA|LEA|EXIT|BRA|NOP|U?LDC|LDCU|R2UR|UR2UP|WARPSYNC|BSYNC|BSSY|RET)\b"
)
RESULTS = 2048
"""Where results lie in the frame; its parts have 16 bytes each."""
RESERVED = 0x400
"""Bytes of shared memory that are the system's, from sm_90 on."""


@dataclass
class Sequence:
    function: Function
    constants: dict[int, bytes]
    base: int

    @property
    def opcodes(self) -> list[str]:
        """Those that compute something."""
        return [step.opcode for step in self.function.code if not _moves(step)]


def _moves(step: Instruction) -> bool:
    """Loads, stores, moves, and multiplications by zero, which are constants."""
    return bool(MOVES.match(step.opcode)) or (len(step.operands) > 3 and step.operands[1:3] == ("-RZ", "RZ"))


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
        at, name = f"[frame+{RESULTS + 16 * place}]", f"%{operand.name}"
        if operand.type == "pred":
            parts.append(f"selp.b32 %t0, 1, 0, {name}; st.volatile.shared.b32 {at}, %t0;")
        else:
            parts.append(f"st.volatile.shared.{operand.register} {at}, {name};")
    return " ".join([*parts, "ret; }"])


def is_plain(form: Form) -> bool:
    """Without memory and special registers, with operands and results that registers of 32 or 64 bits hold."""
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

    @property
    def version(self) -> str:
        found = re.search(r"release ([\d.]+)", self._run("ptxas", "--version").stdout)
        return found[1] if found else "of an unknown release"

    def sequences(self, forms: list[Form], architecture: str) -> dict[int, Sequence]:
        """The machine code of each form that this architecture has, by its number."""
        left = dict(enumerate(forms))
        while left:
            lines = list(left)
            text = HEAD.format(version=VERSION, target=architecture)
            self._text.write_text(text + "\n".join(frame(number, left[number]) for number in lines))
            done = self._run("ptxas", "-O3", "-arch", architecture, "-o", str(self._code), str(self._text))
            if done.returncode == 0:
                return self._read(RESERVED if int(architecture.removeprefix("sm_")) >= 90 else 0)
            wrong = {int(line) - text.count("\n") - 1 for line in LINE.findall(done.stderr + done.stdout)}
            bad = {lines[line] for line in wrong if 0 <= line < len(lines)}
            if not bad:
                raise SystemExit(f"ptxas for {architecture}: {done.stderr or done.stdout}")
            for number in bad:
                del left[number]
        return {}

    def _read(self, base: int) -> dict[int, Sequence]:
        constants = self._constants()
        listing = self._run("nvdisasm", "-c", str(self._code)).stdout
        return {int(name[1:]): Sequence(function, constants.get(name, {}), base) for name, function in functions(listing)}

    def _constants(self) -> dict[str, dict[int, bytes]]:
        """The constant banks of each function, but for that of parameters."""
        found: dict[str, dict[int, bytes]] = {}
        with self._code.open("rb") as file:
            for section in ELFFile(file).iter_sections():
                if (bank := BANK.fullmatch(section.name)) and bank[1] != "0":
                    found.setdefault(bank[2], {})[int(bank[1])] = section.data()
        return found

    def _run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self._paths[name], *arguments], capture_output=True, text=True, check=False)
