"""Sessions at the terminal: commands in, text out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ptxemu.case.array_files import SUFFIXES
from ptxemu.cli import run
from tests.support.kernel_tools import kernel

Session = Callable[..., list[str]]
STORE = """
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
  .loc 1 2 5
  mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
  .loc 1 3 5
  st.global.u32 [%rd1], %r1;
  .loc 1 4 1
  ret;
"""
SOURCE = "void k() {\n  int i = tid;\n  out[i] = i;\n}\n"
CALLS = """
.func (.param .u32 d) twice(.param .u32 a)
{ .reg .u32 %r<4>;
  .loc 1 10 1
  ld.param.u32 %r1, [a]; add.u32 %r2, %r1, %r1; st.param.u32 [d], %r2;
  .loc 1 11 1
  ret; }
"""
CALLER = """
  mov.u32 %r1, %tid.x;
  .loc 1 2 1
  { .param .u32 a0; .param .u32 d0; st.param.u32 [a0], %r1; call (d0), twice, (a0); ld.param.u32 %r2, [d0]; }
  .loc 1 3 1
  add.u32 %r3, %r2, 1;
  ret;
"""
HALF_BARRIER = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bra end; bar.sync 3, 96; end: ret;"


@pytest.fixture
def session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Session:
    """What commands print in a session with a program."""
    (tmp_path / "k.cu").write_text(SOURCE)

    def hold(text: str, *commands: str, arguments: tuple[str, ...] = ("--arg", "out=zeros:u32:64"), block: int = 64) -> list[str]:
        program, script = tmp_path / "k.ptx", tmp_path / "commands"
        program.write_text(text + '.file 1 "k.cu"\n')
        script.write_text("\n".join(commands))
        shape = ["--grid", "1", "--block", str(block)]
        assert run(["debug", str(program), *shape, *arguments, "-x", str(script), "--batch"]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out.replace(str(tmp_path), "").splitlines()

    return hold


def test_a_breakpoint_with_a_condition(session: Session) -> None:
    out = session(
        kernel(STORE), "break k.cu:3 if threadIdx.x == 37 && %r1 > 5", "run", "print %r1 * 2", "p/x %r1", "c", "p out.sum()"
    )
    assert out == [
        "breakpoint 1 at k.cu:3, when the program runs",
        "[block (0,0,0), thread (37,0,0), warp 1, lane 5]",
        "breakpoint 1, k at k.cu:3, step 11",
        "3\t  out[i] = i;",
        "/k.ptx:13\tst.global.u32 [%rd1], %r1;",
        "74",
        "0x25",
        "the program has come to its end (step 12)",
        str(sum(range(64))),
    ]


def test_lines_of_ptx_and_functions(session: Session) -> None:
    out = session(kernel(STORE), "start", "break 13", "break k", "tbreak k.ptx:15", "info breakpoints", "delete", "continue")
    assert out[3:6] == [
        "breakpoint 1 at k.cu:3: st.global.u32 [%rd1], %r1;",
        "breakpoint 2 at /k.ptx:9: ld.param.u64 %rd1, [out];",
        "breakpoint 3 at k.cu:4: ret;",
    ]
    assert out[-1] == "the program has come to its end (step 12)"


def test_steps_of_a_thread_a_warp_and_all(session: Session) -> None:
    out = session(kernel(STORE), "start", "stepi", "stepi 2 warp", "step", "cuda thread 40", "stepi thread", "stepi all")
    steps = [line.rpartition("step ")[2] for line in out if ", step " in line]
    assert steps == ["1", "2", "4", "5", "7", "8"] and "[block (0,0,0), thread (40,0,0), warp 1, lane 8]" in out


def test_functions(session: Session) -> None:
    text = kernel(CALLER, "", CALLS)
    out = session(text, "break twice", "run", "bt", "finish", "step", arguments=(), block=1)
    assert [line for line in out if line.startswith("#")] == ["#0 twice at k.cu:10", "#1 k at k.cu:2"]
    assert out[-3].startswith("k at k.cu:3") and any(line.startswith("k at k.cu:2") for line in out)
    over = session(text, "break k.cu:2", "run", "next", arguments=(), block=1)
    assert over[-3].startswith("k at k.cu:3")


def test_a_watchpoint_on_an_element(session: Session) -> None:
    out = session(kernel(STORE), "start", "watch out[33]", "rwatch 0", "c", "x/4dw out[31]", "info breakpoints")
    assert "watchpoint 1: out[33]: 0x00000000 -> 0x00000021, k at k.cu:3, step 11" in out
    assert "[block (0,0,0), thread (33,0,0), warp 1, lane 1]" in out
    assert out[-2].split("\t")[1:] == ["31", "32", "33", "34"] and out[-1].endswith("hit 1 times")


def test_shared_memory_is_watched_and_shown(session: Session) -> None:
    body = "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1; ret;"
    text = kernel(body, "", ".shared .b32 s[64];")
    out = session(text, "start", "watch shared 8", "c", "x/3uw shared 4", "x/1xb shared 256", arguments=())
    assert any(line.startswith("watchpoint 1: shared 8: 0x00000000 -> 0x00000002") for line in out)
    assert out[-2].split("\t")[1:] == ["1", "2", "3"]
    assert out[-1] == "bytes 256 to 256 are not in the 256 bytes of shared memory"


def test_time_goes_back(session: Session) -> None:
    back = ("break k.cu:3", "run", "c", "reverse-continue", "reverse-step", "goto 9", "reverse-stepi", "reverse-stepi all")
    out = session(kernel(STORE), *back)
    steps = [line.rpartition("step ")[2] for line in out if ", step " in line]
    assert steps == ["5", "11", "5", "3", "9", "8", "7"]


def test_a_fault_can_be_gone_back_from(session: Session) -> None:
    body = STORE.replace("mul.wide.u32 %rd2, %r1, 4", "mul.wide.u32 %rd2, %r1, 4096")
    out = session(kernel(body), "run", "print %r1", "reverse-stepi", "where")
    fault = next(line for line in out if line.startswith("fault"))
    assert fault == "fault, k at k.cu:3, step 5"
    assert any("illegal address" in line for line in out)
    assert "k at k.cu:2, step 4" in out
    assert out[-2].startswith("*") and "add.u64" in out[-2] and "warp   1" in out[-1]


def test_stuck_warps_say_what_they_wait_for(session: Session) -> None:
    out = session(kernel(HALF_BARRIER, ""), "run", "info warps", "info threads", "reverse-stepi", arguments=())
    told, waiting = [line for line in out if "warp   1" in line]  # with the fault, and where it is asked for
    waits = "lanes 0xffffffff waits for barrier 3: 32 of 96 threads have arrived"
    assert waits in told and waits in waiting
    assert any("warp   0 lanes 0xffffffff exited" in line for line in out)


SPIN = """
  mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; setp.eq.u32 %p1, %r1, 3; @%p1 bra end;
  .loc 1 1 1
again:
  .loc 2 7 1, function_name $L, inlined_at 1 1 1
  atom.global.cas.b32 %r2, [%rd1+8], 0, 1; setp.ne.u32 %p1, %r2, 5;
  .loc 1 1 1
  @%p1 bra again;
end: ret;
"""
LOCKS = '.file 2 "lock.h"\n.section .debug_str { $L:\n.b8 97,0\n}\n'


def test_warps_that_spin_say_on_what(session: Session) -> None:
    out = session(kernel(SPIN) + LOCKS, "break lock.h:7", "run", "delete", "goto 300", "where")
    spins = [line for line in out if "in a loop on atom, 8 bytes into `out` (256 bytes at 0x" in line]
    assert len(spins) == 2 and "warp   0 lanes 0xfffffff7 can run" in spins[0] and "lanes 0xffffffff" in spins[1]
    assert all("  k.cu:1 (in lock.h:7): " in line or "  k.cu:1: " in line for line in spins)


def test_a_timeout_says_on_what_warps_spin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "k.ptx"
    program.write_text(kernel(SPIN) + LOCKS + '.file 1 "k.cu"\n')
    shape = ["--grid", "1", "--block", "32", "--arg", "out=zeros:u32:64"]
    assert run(["run", str(program), *shape, "--timeout", "0.2", "--engine", "interpreter"]) == 1
    told = capsys.readouterr().err.replace("\n", " ")
    assert "lanes 0xfffffff7 can run, in a loop on atom, 8 bytes into `out` (256 bytes at 0x" in " ".join(told.split())


def test_a_seed_and_a_step_come_back_to_the_same_state(session: Session) -> None:
    def at(step: int) -> list[str]:
        return session(
            kernel(STORE), "where", "p %r1", arguments=("--arg", "out=zeros:u32:64", "--seed", "5", "--replay", str(step))
        )

    assert at(9) == at(9) and ", step 9" in " ".join(at(9))


CLUSTER = """
  mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1; mov.u32 %r3, box; mapa.shared::cluster.u32 %r4, %r3, %r2;
  .loc 1 2 1
  st.shared::cluster.u32 [%r4], 7;
  .loc 1 3 1
  barrier.cluster.arrive; barrier.cluster.wait;
  ld.shared.u32 %r5, [box];
  ret;
"""


def test_a_block_of_a_cluster(session: Session) -> None:
    out = session(
        kernel(CLUSTER, "", ".shared .u32 box[4];").replace("sm_80", "sm_90"),
        "break k.cu:2 if blockIdx.x == 1", "run", "where", "p %cluster_ctarank", "stepi 2", "cuda block 0,0,0", "x/1xw shared 0",
        "goto 9", "cuda block 0,0,0", "delete 1", "watch shared 0", "continue",
        arguments=("--grid", "2", "--cluster", "2"), block=32,
    )  # fmt: skip
    text = "\n".join(out)
    assert "[block (1,0,0), thread (0,0,0), warp 0, lane 0]\nbreakpoint 1, k at k.cu:2" in text
    assert "block (0,0,0) warp   0 lanes 0xffffffff waits for barrier.cluster  k.cu:3" in text
    assert "block (1,0,0) warp   0 lanes 0xffffffff can run" in text
    assert "shared 0x0:\t0x00000007" in text
    assert "watchpoint 2: shared 0: 0x00000000 -> 0x00000007" in text


def test_variables_and_locals(session: Session) -> None:
    out = session(
        kernel(STORE, ".param .u64 out, .param .f32 a"),
        "start",
        "info locals",
        arguments=("--arg", "out=zeros:u32:64", "--arg", "a=1.5"),
    )
    assert "a = 1.5 (0x3fc00000)" in out and "DWARF" in out[-1]


def test_surfaces_are_saved_and_texels_watched(session: Session, tmp_path: Path) -> None:
    body = "mov.u32 %r1, %tid.x; sust.b.2d.b32.trap [image, {%r2, %r3}], {%r1}; ret;"
    text = kernel(body, "", ".global .surfref image;")
    given = ("--surface", "image=zeros:4x4:R8G8B8A8_UNORM")
    saved = tmp_path / "now.png"
    out = session(text, "start", "watch image[0,0]", "c", f"surface image {saved}", "surface other", arguments=given, block=8)
    assert any(line.startswith("watchpoint 1: image[0,0]: 0x00000000 -> 0x0000000") for line in out)
    assert saved.suffix in SUFFIXES and saved.exists() and "no surface is named 'other'; there are image" in out[-1]


WRONG = [
    "nonsense", "r\x00n", "continue", "step", "stepi 0", "stepi x y", "goto 0", "goto -1", "break", "break ''", "delete 99",
    "enable 7", "watch", "watch x[1]", "watch out[99]", "watch out[a]", "watch local 0", "watch 18446744073709551616", "print",
    "print 1 +", "print %none", "print __import__('os')", "p out[1:2:0]", "p " + "(" * 5000, "x", "x/0", "x/8fb shared 0",
    "x/99999xg 0", "x 0x1234", "x -1", "x/4xw param 9999", "surface", "info", "info x", "info cuda", "cuda thread 9999",
    "cuda lane", "finish", "reverse-nothing", "start x", "help me", "break 5 if (",
]  # fmt: skip


def test_wrong_commands_are_said(session: Session) -> None:
    out = session(kernel(STORE), *WRONG[:5], "start", *WRONG, "p 1 + 1")
    assert out[-1] == "2"
    assert not [line for line in out if "Traceback" in line]
    assert len(out) > len(WRONG)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "--grid", "1", "--block", "1"], "standard input has its commands"),
        (["nowhere.ptx", "--grid", "1", "--block", "1"], "no such file"),
        (["nowhere.ptx", "-x", "nowhere.gdb"], "no such file"),
    ],
)
def test_wrong_input_is_said(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["debug", *arguments]) == 2
    assert message in capsys.readouterr().err.lower()


def test_births_of_nans_stop(session: Session) -> None:
    body = "mov.f32 %f1, 0f00000000;\n.loc 1 3 1\ndiv.rn.f32 %f2, %f1, %f1;\n.loc 1 4 1\nadd.f32 %f3, %f2, %f2; ret;"
    out = session(kernel(body, ""), "start", "catch nonsense", "catch nan", "continue", "print %f2", "catch", "c", arguments=())
    assert "NaN is made, k at k.cu:3, step 2" in out and "nan" in out
    assert "'nonsense' is none of NaN, infinity, subnormal" in out
