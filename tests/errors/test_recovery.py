"""Several faults in one file: each is reported, once, at its own line, and nothing else is."""

from __future__ import annotations

import random
from typing import Any

import pytest

import ptxemu
from ptxemu.syntax.stream import TokenStream
from ptxemu.syntax.tokens import made
from ptxemu.text.errors import MAX_ERRORS

HEAD = """.version 8.8
.target sm_90
.address_size 64
.global .align 4 .b8 table[64];
.func (.param .b32 result) helper(.param .b32 a, .param .b64 b)
{
    ret;
}
"""
KERNEL = """.visible .entry kern(.param .u64 out, .param .u32 n)
{
    .reg .pred %p<5>;
    .reg .b32 %r<10>;
    .reg .b64 %rd<10>;
    .reg .f32 %f<10>;
    @%p1 bra $L_done;
"""
TAIL = """$L_done:
    ret;
}
"""
RIGHT = "    mov.u32 %r4, 7;\n"
BODY = """add.u32 %r3 %r1, %r2;
add.u32 %r3, %r1 %r2;
add.u32 %r3, %r1;
add.u23 %r3, %r1, %r2;
addd.u32 %r3, %r1, %r2;
add.f32 %f1, %f2, 1.0f;
add.u32 (%r1, %r2, %r3);
add.u32 %r1 = %r2, %r3;
%r1 = %r2 + %r3;
int x = 5;
if (%p1) bra $L_done;
reg .b32 %N;
.reg b32 %N;
.reg %N .b32;
.reg .b32 %N %Nb;
.reg .b32 %r<10>;
.shared .b8 N[-4];
.shared .b8 N[4;
.share .b8 N[4];
mov.u32 %r1, ;
mov.u32 %r1,, %r2;
mov.u32 %r1, %r2;;
mov. u32 %r1, %r2;
mov u32 %r1, %r2;
mov.u32 %r1, N;
mov.u32 %r1, $L_done;
ld.global.u32 %r1, [%rd1;
ld.global.u32 %r1, [%rd1*4];
ld.global.u32 %r1, %rd1];
ld.global.u32 %r1, [%rd1]+4;
ld.global.v2.u32 {%r1 %r2}, [%rd1];
@%p9 bra $L_done;
@(%p1) bra $L_done;
!@%p1 bra $L_done;
bra N;
5: ret;
call (%r1) helper (%r2, %rd1);
call helper(%r2, %rd1);
goto $L_done;
printf("x");
)
,
@
$
mov.u32 %r1, \u00e9;
.pragma nounroll;
.loc 1 2;""".splitlines()
TOP = """.global .u32 N = ;
.global .f32 N = 1.0f;
.global .u32 N[2] = {1, 2, 3};
.global .u32 N[2] = {1 2};
.global u32 N;
.global .u32 N y;
.gloabl .u32 N;
global .u32 5;
.align 3 .u32 N;
.entry N(.param .u32 a .param .u32) { ret; }
.entry N(.param .u32 a; .param .u32 b) { ret; }
.entry N(int a) { ret; }
.entry N(.param .u32 a { ret; }
.entry N(.reg .u32 a) { ret; }
.func N() { ret; } }
.func N() { bra L; }
struct N { int x; };
.version 8.0""".splitlines()


def lines_at_fault(text: str, strict: bool = False) -> list[int]:
    return [record.line for record in ptxemu.lint(text, strict=strict) if record.severity == "error"]


@pytest.mark.parametrize("fault", [fault for fault in BODY if fault != "@"])
def test_one_fault_in_a_body(fault: str) -> None:
    text = HEAD + KERNEL + "    " + fault + "\n" + RIGHT + TAIL
    assert lines_at_fault(text) == [HEAD.count("\n") + KERNEL.count("\n") + 1]


@pytest.mark.parametrize("fault", TOP)
def test_one_fault_between_functions(fault: str) -> None:
    assert lines_at_fault(HEAD + fault + "\n" + KERNEL + TAIL) == [HEAD.count("\n") + 1]


@pytest.mark.parametrize("seed", range(60))
def test_many_faults(seed: int) -> None:
    rng = random.Random(seed)
    text, wanted = HEAD, []
    names = iter(f"name{number}" for number in range(1000))
    for kernel in range(rng.randrange(1, 4)):
        if rng.random() < 0.7:
            fault = rng.choice(TOP)
            wanted.append(text.count("\n") + 1)
            text += fault.replace("N", next(names)) + "\n"
        text += KERNEL.replace("kern", f"kern{kernel}")
        for fault in rng.sample(BODY, rng.randrange(1, 12)):
            wanted.append(text.count("\n") + 1 + (fault == "@"))  # the guard is what follows
            text += "    " + fault.replace("N", next(names)) + "\n" + RIGHT
        text += TAIL
    assert lines_at_fault(text, strict=seed % 2 == 0) == wanted[:MAX_ERRORS]


def test_the_first_errors_stay() -> None:
    """Errors of both stages: those that come first in the source."""
    faults = ["add.u32 %f1, %r1, 1;\n", "mov.u32 %r1 %r2;\n"] * 20
    assert lines_at_fault(HEAD + KERNEL + "".join(faults) + TAIL) == list(range(16, 16 + MAX_ERRORS))


def test_declarations_too_stop_at_twenty() -> None:
    assert len(lines_at_fault(HEAD + ".global .u32 table;\n" * 30)) == MAX_ERRORS


def test_the_rest_of_a_function_closed_too_early_is_one_error() -> None:
    early = KERNEL + "    }\n" + RIGHT * 3 + "    .local .b8 x[4];\n" + TAIL
    text = HEAD + early + KERNEL.replace("kern", "next") + "    mov.u32 %r1, N;\n" + TAIL
    # the label of the branch is behind the brace: that is the first thing wrong, as for ptxas
    assert lines_at_fault(text) == [15, 17, 31]
    nested = HEAD + KERNEL + ".func f() { ret; }\n" + RIGHT + TAIL
    assert lines_at_fault(nested) == [16]


def test_valid_code_after_errors_that_ptxemu_cannot_run_is_no_error() -> None:
    text = HEAD + ".entry k() { ret; }\n.global .u64 a = k;\n"
    assert lines_at_fault(text) == []
    with pytest.raises(ptxemu.UnsupportedError):
        ptxemu.loads(text)
    with pytest.raises(ptxemu.PtxError):
        ptxemu.loads(text + ".global .foo x;\n")


def test_a_stray_parenthesis_before_a_block() -> None:
    """The block is one of its own: braces are counted alike where they are read and where they are skipped."""
    text = HEAD + ".func f() { ret; ) { ret; a);\n.global { ret; }\n.func g() { ret; }\n" + KERNEL + TAIL
    assert lines_at_fault(text) == [9, 9, 10, 11]


def test_recovery_that_comes_back_to_one_place_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def stay(self: TokenStream, token: Any) -> None:
        self._unread(token)
        self._pending.append(made("RESYNC", "", token.lexpos))

    monkeypatch.setattr(TokenStream, "_resume", stay)
    assert len(lines_at_fault(HEAD + KERNEL + "mov.u32 %r1 = 5;\n" + TAIL)) == 1
