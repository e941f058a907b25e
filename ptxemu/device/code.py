"""Code of a kernel as compilation leaves it, the cache keeps it and launches take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict

from ptxemu._runtime import ffi, lib
from ptxemu.device.entry import Entry, Writer
from ptxemu.ir.block_shape import is_full

if TYPE_CHECKING:
    from ptxemu._runtime import CData


class Facts(Struct, frozen=True):
    """What a launch must know of a kernel's code. Sizes are in bytes.

    ``suspends``: its warps may wait, or give way to others before they end; ``looped``: it runs all warps of a block when it is
    called for the first, ``rows``: and of several blocks side by side; ``spread``: rows of threads begin at lanes of their own;
    ``spins``: they may wait for memory that another block writes. ``calls``: it makes real calls; ``stacked``: beyond
    ``local_bytes`` it takes local memory as it goes; ``brief``: of a kernel that ends soon, whatever it is given, about how many
    machine instructions a warp takes, else 0; ``daz``: the processor must read subnormal numbers as zeros meanwhile.
    ``frame_bytes``: of the host stack, for one function.
    """

    variant: str = "any"
    static_shared: int = 0
    local_bytes: int = 0
    frame_bytes: int = 0
    suspends: bool = False
    looped: bool = False
    rows: bool = False
    abreast: bool = False
    spread: bool = False
    spins: bool = False
    calls: bool = False
    stacked: bool = False
    brief: int = 0
    daz: bool = False

    def native(self) -> CData:
        """A ``pe_code_facts`` of this and no texts."""
        return ffi.new("pe_code_facts *", {name: value for name, value in self.record().items() if name != "variant"})

    def record(self) -> dict[str, object]:
        """The fields of a ``pe_code_facts``; whether code is for full warps alone follows from its variant."""
        return {**asdict(self), "full": is_full(self.variant)}


class KernelCode(Struct, frozen=True):
    """Object code of one variant of a kernel. ``final``: the best tier makes no other code of this kernel. ``maker``: the version
    of LLVM, as llvmlite counts them."""

    object: bytes
    symbol: str
    final: bool
    facts: Facts
    maker: str = ""

    @property
    def body(self) -> bytes:
        """As entries hold it."""
        writer = Writer()
        names = {"variant": self.facts.variant, "symbol": self.symbol, "maker": self.maker}
        texts = {field: writer.text(name) for field, name in names.items()}
        writer.add(lib.PE_SECTION_CODE, self.facts.record() | texts | {"final": self.final})
        writer.data(lib.PE_SECTION_OBJECT, self.object)
        return writer.body()

    @classmethod
    def from_entry(cls, entry: Entry | None) -> KernelCode | None:
        """The code in an entry, or None where there is none."""
        if entry is None:
            return None
        (code,) = entry.records(lib.PE_SECTION_CODE)
        facts = Facts(
            variant=entry.text(code.variant),
            static_shared=code.static_shared,
            local_bytes=code.local_bytes,
            frame_bytes=code.frame_bytes,
            suspends=bool(code.suspends),
            looped=bool(code.looped),
            rows=bool(code.rows),
            abreast=bool(code.abreast),
            spread=bool(code.spread),
            spins=bool(code.spins),
            calls=bool(code.calls),
            stacked=bool(code.stacked),
            brief=code.brief,
            daz=bool(code.daz),
        )
        return cls(entry.data(lib.PE_SECTION_OBJECT), entry.text(code.symbol), bool(code.final), facts, entry.text(code.maker))
