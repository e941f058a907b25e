"""Lines of the source in LLVM IR, for tools that look at compiled kernels ("Debug Info" of LLVM's Language Reference)."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import PurePath

from ptxemu.ir.ops import Module, Op
from ptxemu.ir.source_lines import SourceLines
from ptxemu.text.source import Location

FIRST = 10  # number of metadata; the smaller ones are those of llvm_module.py
PRODUCER = "ptxemu"


class LineInfo:
    """That of a module's functions: a line of CUDA C++ where it is known, else of the PTX."""

    def __init__(self, module: Module) -> None:
        self._source, self._lines = module.source, SourceLines(module)
        self._texts: list[str] = []
        self._numbers: dict[Hashable, int] = {}
        self._scope = 0  # the function that is being lowered
        unit_file = self._file(module.source.where(0).rpartition(":")[0])
        cu = f'emissionKind: FullDebug, producer: "{PRODUCER}", isOptimized: true, runtimeVersion: 0'
        self._unit = self._add("unit", f"distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !{unit_file}, {cu})")
        types = self._add("types", "!{null}")
        self._type = self._add("type", f"!DISubroutineType(types: !{types})")

    def _add(self, key: Hashable, text: str) -> int:
        if key not in self._numbers:
            self._numbers[key] = FIRST + len(self._texts)
            self._texts.append(text)
        return self._numbers[key]

    def _file(self, name: str) -> int:
        path = PurePath(name)
        return self._add(("file", name), f"!DIFile(filename: {_quoted(path.name)}, directory: {_quoted(str(path.parent))})")

    def place(self, op: Op) -> Location:
        return next(iter(self._lines.of(op)), None) or self._source.location(op.pos)

    def begin(self, symbol: str, name: str, first: Op | None) -> None:
        """A function is going to be lowered, which people know by a name."""
        where = Location(self._source.name, 1) if first is None else self.place(first)
        file = self._file(where.file)
        facts = f"name: {_quoted(name)}, scope: !{file}, file: !{file}, line: {where.line}, scopeLine: {where.line}"
        kind = f"type: !{self._type}, unit: !{self._unit}, spFlags: DISPFlagDefinition | DISPFlagOptimized"
        self._scope = self._add(("function", symbol), f"distinct !DISubprogram({facts}, {kind})")

    @property
    def attachment(self) -> str:
        """Of the definition of that function."""
        return f" !dbg !{self._scope}"

    def mark(self, lines: list[str], start: int, op: Op) -> None:
        """Give the instructions from a place of a text on the line of an op."""
        where, scope = self.place(op), self._scope
        file = self._file(where.file)
        block = self._add(("block", scope, file), f"!DILexicalBlockFile(scope: !{scope}, file: !{file}, discriminator: 0)")
        number = self._add((block, where.line), f"!DILocation(line: {where.line}, column: 0, scope: !{block})")
        for index in range(start, len(lines)):
            if lines[index].startswith("  ") and "\n" not in lines[index] and "!dbg" not in lines[index]:
                lines[index] += f", !dbg !{number}"

    @property
    def metadata(self) -> str:
        flag = FIRST + len(self._texts)
        named = [f"!llvm.dbg.cu = !{{!{self._unit}}}", f"!llvm.module.flags = !{{!{flag}}}"]
        texts = [*self._texts, '!{i32 2, !"Debug Info Version", i32 3}']
        return "\n".join([*named, *(f"!{number} = {text}" for number, text in enumerate(texts, FIRST))])


def _quoted(text: str) -> str:
    data = text.encode("utf-8", "replace")
    return '"' + "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in data) + '"'
