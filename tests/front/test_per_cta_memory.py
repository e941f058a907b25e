"""``.minperctamemory`` and what belongs to it, as ptxas 13.5 has them: known, though the registers are not run."""

from __future__ import annotations

import pytest

from ptxemu.driver.compile import front
from ptxemu.text.errors import PtxError, UnsupportedError

MODULE = """.version {version}
.target {target}
.address_size 64
.visible .entry k() {directive} {{ .reg .b64 %d; .reg .b32 %r; {body} ret; }}
"""
GIVEN = ".minperctamemory 4096"


def checked(version: str, target: str, directive: str = GIVEN, body: str = "") -> None:
    front(MODULE.format(version=version, target=target, directive=directive, body=body), strict=True)


@pytest.mark.parametrize("directive", [GIVEN, ".minperctamemory 0", ".minperctamemory 8 .maxntid 32"])
def test_the_directive_is_taken(directive: str) -> None:
    checked("9.4", "sm_80", directive)


@pytest.mark.parametrize(
    ("version", "target", "directive", "message"),
    [("9.3", "sm_90", GIVEN, "needs PTX 9.4 and sm_80"), ("9.5", "sm_75", GIVEN, "needs PTX 9.4 and sm_80"),
     ("9.5", "sm_90", ".minperctamemory 8, 8", "takes one integer"),
     ("9.5", "sm_90", ".minperctamemory 4294967296", "does not fit 32 bits")],
)  # fmt: skip
def test_the_directive_is_refused(version: str, target: str, directive: str, message: str) -> None:
    with pytest.raises(PtxError, match=message):
        checked(version, target, directive)


@pytest.mark.parametrize("body", ["mov.u64 %d, %perctamemoryoffset;", "mov.s32 %r, %perctamemorysize;"])
def test_registers_are_said_to_be_unsupported(body: str) -> None:
    with pytest.raises(UnsupportedError, match=r"the special register '%perctamemory\w+' is not supported"):
        checked("9.5", "sm_90", body=body)


@pytest.mark.parametrize("body", ["mov.u32 %r, %perctamemoryoffset;", "mov.b64 %d, %perctamemorysize;"])
def test_registers_have_their_types(body: str) -> None:
    with pytest.raises(PtxError, match="which does not fit"):
        checked("9.5", "sm_90", body=body)
