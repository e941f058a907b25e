"""What a case of the agreement corpus is: a small module, valid or broken in one named way."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.row_forms import NEWEST

REGISTERS = """\
    .reg .pred %p<8>; .reg .b8 %b<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .b128 %q<4>;
    .reg .u16 %hu<4>; .reg .s16 %hs<4>; .reg .u32 %u<4>; .reg .s32 %s<4>; .reg .u64 %du<4>; .reg .s64 %ds<4>;
    .reg .f16 %e<4>; .reg .f16x2 %ee<4>; .reg .f32 %f<8>; .reg .f64 %g<8>; .reg .v2 .b32 %v2r; .reg .v4 .f32 %v4f;
"""
SYMBOLS = """\
.global .align 16 .b8 gbuf[256];
.const .align 16 .b8 cbuf[64];
.shared .align 16 .b8 sbuf[256];
.global .surfref surf;
"""

SCALARS = (
    "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "b128", "f16", "f16x2", "bf16", "bf16x2",
    "f32", "f64",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """``rule`` is the class of rules that the case is about, ``name`` what is right or wrong in it."""

    rule: str
    name: str
    text: str


def header(version: str = NEWEST, target: str = "sm_90") -> str:
    return f".version {version}\n.target {target}\n.address_size 64\n"


def module(rule: str, name: str, text: str, *, version: str = NEWEST, target: str = "sm_90") -> Case:
    """A case whose module follows the usual three directives."""
    return Case(rule, name, header(version, target) + text.strip("\n") + "\n")


def entry(
    rule: str,
    name: str,
    body: str,
    *,
    before: str = "",
    params: str = ".param .u64 out, .param .u32 n",
    version: str = NEWEST,
    target: str = "sm_90",
) -> Case:
    """A case whose statements stand in a kernel with no declarations but its own."""
    lines = "".join(f"    {line.strip()}\n" for line in body.strip().splitlines())
    kernel = f".visible .entry k({params})\n{{\n{lines}    ret;\n}}"
    return module(rule, name, before + ("\n" if before else "") + kernel, version=version, target=target)


def line(
    rule: str, name: str, instruction: str, *, version: str = NEWEST, target: str = "sm_90", registers: str = REGISTERS
) -> Case:
    """A case of one instruction, in a kernel with registers of every type and a variable in every space."""
    kernel = f".visible .entry k(.param .u64 out, .param .b32 n)\n{{\n    .local .align 16 .b8 lbuf[64];\n{registers}"
    text = f"{SYMBOLS}{kernel}    {instruction}\n    ret;\n}}"
    return module(rule, name, text, version=version, target=target)
