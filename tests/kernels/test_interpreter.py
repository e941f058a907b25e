"""The interpreter as an engine: what it is asked for, how it ends, and how its lanes wait for each other."""

from __future__ import annotations

import _thread
import re
import shutil
import threading

import numpy as np
import pytest

import ptxemu
from ptxemu import Device, Fault, InputError
from ptxemu.case import case_file, find_cases, read_case, run_case
from ptxemu.cli import run
from ptxemu.interpreter.translate import METHODS
from ptxemu.text.errors import LaunchTimeout, UnsupportedError
from tests.support.places import SAMPLES

HEADER = ".version 8.5\n.target sm_90\n.address_size 64\n"
ADDRESS = re.compile(r"0x[0-9a-f]{8,}")
STANDING = re.compile(r"(\n  block .*)+")  # where warps are that are stuck, which only the interpreter knows
SMALLER = {
    "mandelbrot": {"[19, 57]": "[2, 3]", "600": "60", "450": "20", "0.005": "0.05"},
    "matmul": {"[13, 10]": "[3, 2]", "150": "30", "200": "40", "170": "34"},
    "saxpy": {"4096": "16", "1048576": "4090"},
    "histogram": {"grid = 24": "grid = 3", "1000003": "50003"},
    "rotate": {"[13, 15]": "[3, 4]", "200": "40", "120": "30"},
    "picture": {"[13, 25]": "[3, 5]", "200": "40"},
}
"""What is changed in the cases of samples that would take minutes, one lane after another."""


@pytest.fixture
def device():
    with Device("64 MiB", engine="interpreter") as made:
        yield made


def kernel(device: Device, body: str, parameters: str = ".param .u64 out", before: str = "") -> ptxemu.api.Kernel:
    """A kernel ``k`` with registers; ``%out`` is the address of its first parameter, ``%at`` that of the thread's word."""
    text = f"""{HEADER}{before}
.visible .entry k({parameters})
{{
  .reg .b32 %r<32>; .reg .b64 %d<16>, %out, %at; .reg .pred %p<8>; .reg .f32 %f<8>;
  ld.param.u64 %out, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %at, %r0, 4; add.u64 %at, %at, %out;
{body}
  ret;
}}
"""
    return ptxemu.loads(text, filename="k.ptx", device=device)["k"]


def both(body: str, block: int = 32, words: int = 64) -> list[str]:
    """The fault of each engine, without addresses, which are those of the device, and places of warps that are stuck."""
    messages = []
    for engine in ("jit", "interpreter"):
        with Device("64 MiB", workers=1, engine=engine) as device:
            buffer, launcher = device.to_device(np.zeros(words, np.uint32), name="words"), kernel(device, body)[1, block]
            with pytest.raises(Fault) as caught:
                launcher(buffer)
        messages.append(STANDING.sub("", ADDRESS.sub("0x...", str(caught.value))))
    return messages


# ---------------------------------------------------------------- asking for it


def test_an_engine_has_a_name():
    with pytest.raises(InputError, match="engine must be one of jit, interpreter, not 'cuda'"):
        Device(engine="cuda")


def test_the_command_line_asks_for_it(capfd):
    assert run(["test", "--engine", "interpreter", str(SAMPLES / "scan")]) == 0
    assert "1 passed" in capfd.readouterr().out


def test_instructions_that_it_does_not_run_are_errors(device, monkeypatch):
    monkeypatch.delitem(METHODS, "activemask")
    with pytest.raises(UnsupportedError, match=r"k.ptx:9: instruction 'activemask' is not supported by the interpreter"):
        kernel(device, "activemask.b32 %r1;")[1, 32](np.zeros(32, np.uint32))


def test_an_open_array_parameter_is_as_long_as_what_is_passed(device):
    """Functions that recurse, too, which the compiler refuses."""
    before = """
.func (.param .b32 r) last (.param .b32 n, .param .align 8 .b8 values[])
{
  .reg .b32 %n, %a, %i; .reg .b64 %at; .reg .pred %p; .param .align 8 .b8 longer[24]; .param .b32 m, found; .local .b32 kept;
  ld.param.b32 %n, [n]; st.local.b32 [kept], %n; setp.eq.u32 %p, %n, 0; @%p bra bottom;
  ld.param.b32 %a, [values+8]; add.u32 %a, %a, 1; st.param.b64 [longer], 0; st.param.v2.b32 [longer+8], {%a, 7};
  st.param.b64 [longer+16], 9; sub.u32 %i, %n, 1; st.param.b32 [m], %i; call (found), last, (m, longer);
  ld.param.b32 %a, [found]; ld.local.b32 %i, [kept]; mad.lo.u32 %a, %i, 1000, %a; st.param.b32 [r], %a; ret;
bottom: mov.b64 %at, values; ld.local.b32 %a, [%at+8]; st.param.b32 [r], %a; ret;
}
"""
    body = """
  .param .align 8 .b8 values[12]; .param .b32 n, r; rem.u32 %r1, %r0, 4; st.param.b32 [n], %r1; st.param.b64 [values], 0;
  st.param.b32 [values+8], 50; call (r), last, (n, values); ld.param.b32 %r2, [r]; st.global.b32 [%at], %r2;
"""
    out = np.zeros(32, np.uint32)
    kernel(device, body, before=before)[1, 32](out)
    assert out.tolist() == [50 + n + 1000 * (n * (n + 1) // 2) for n in [i % 4 for i in range(32)]]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", find_cases([SAMPLES]), ids=lambda path: path.parent.name)
def test_samples(path, device, tmp_path):
    folder = tmp_path / path.parent.name
    shutil.copytree(path.parent, folder)
    text = case_file(folder).read_text()
    for size, smaller in SMALLER.get(folder.name, {}).items():
        assert size in text
        text = text.replace(size, smaller)
    case_file(folder).write_text(text)
    result = run_case(read_case(folder), timeout=600, output=tmp_path, device=device)
    assert result.passed
    assert not [text for text in result.warnings if "the kernel uses it as" in text]


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize(
    "body",
    [
        "mov.u64 %d0, 0; st.global.u32 [%d0], %r0;",
        "add.u64 %d0, %out, 0x10000000; st.global.u32 [%d0], %r0;",
        "add.u64 %d0, %at, 2; ld.global.u32 %r1, [%d0];",
        "mov.u32 %r1, 64; ld.shared.u32 %r2, [%r1];",
        "setp.eq.u32 %p0, %r0, 7; @%p0 trap;",
        "mov.u32 %r1, 16; bar.sync %r1;",
        "mov.u32 %r1, 48; bar.sync 1, %r1;",
        "setp.lt.u32 %p0, %r0, 32; @%p0 bar.sync 1, 64;",
        "mov.u64 %d0, 5; { .reg .b64 %x; cvta.shared.u64 %x, %d0; atom.global.add.u32 %r1, [%x], 1; }",
        "ld.local.u32 %r1, [4096];",
    ],
)  # fmt: skip
def test_faults_are_those_of_the_compiler(body):
    compiled, interpreted = both(body, block=32)
    assert interpreted == compiled


def test_a_fault_leaves_the_module_usable(device):
    made = kernel(device, "ld.global.u32 %r1, [%at]; add.u32 %r1, %r1, 1; st.global.u32 [%at], %r1;")
    with pytest.raises(Fault, match="null pointer"):
        made[1, 32](0)
    out = np.zeros(32, np.uint32)
    made[1, 32](out)
    assert out.tolist() == [1] * 32


# ---------------------------------------------------------------- endings


FOREVER = "again: add.u32 %r1, %r1, 1; bra again;"


def test_a_time_limit_holds(device):
    with pytest.raises(LaunchTimeout, match=r"kernel `k` did not end within 0.3 s: block \(0,0,0\), warp 0 was running"):
        kernel(device, FOREVER)[1, 32](np.zeros(32, np.uint32), timeout=0.3)


def test_control_c_ends_a_launch(device):
    threading.Timer(0.5, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        kernel(device, FOREVER)[1, 32](np.zeros(32, np.uint32))


def test_several_threads_may_launch(device):
    made = kernel(device, "mov.u32 %r1, %ctaid.x; st.global.u32 [%at], %r1;")
    outputs = [np.zeros(32, np.uint32) for _ in range(4)]
    threads = [threading.Thread(target=lambda out=out: made[5, 32](out)) for out in outputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(out.tolist() == [4] * 32 for out in outputs)


# ---------------------------------------------------------------- lanes, warps and blocks that wait for each other


def test_lanes_of_a_warp_may_hold_a_lock_in_turn(device):
    """Each lane spins until it has the lock, which another lane of its warp holds meanwhile."""
    body = """
  mov.u64 %d1, %out; add.u64 %d2, %out, 4;
again: atom.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p0, %r1, 0; @%p0 bra again;
  ld.volatile.global.u32 %r2, [%d2]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%d2], %r2;
  st.volatile.global.u32 [%d1], 0;
"""
    out = np.zeros(2, np.uint32)
    kernel(device, body)[2, 64](out, timeout=60)
    assert out.tolist() == [0, 128]


def test_blocks_may_wait_for_those_after_them(device):
    """The first block ends when the last has begun."""
    body = """
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; sub.u32 %r2, %r2, 1;
  setp.eq.u32 %p0, %r1, %r2; @%p0 st.volatile.global.u32 [%out], 1;
again: ld.volatile.global.u32 %r3, [%out]; setp.eq.u32 %p1, %r3, 0; @%p1 bra again;
"""
    out = np.zeros(1, np.uint32)
    kernel(device, body)[5, 32](out, timeout=60)
    assert out.tolist() == [1]


def test_instructions_with_the_same_membermask_meet(device):
    """Odd and even lanes exchange their values in arms of their own."""
    body = """
  and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 0; @%p0 bra even;
  shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1; bra done;
even: shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1;
done: st.global.u32 [%at], %r2;
"""
    out = np.zeros(32, np.uint32)
    kernel(device, body)[1, 32](out, timeout=60)
    assert out.tolist() == [lane ^ 1 for lane in range(32)]


def test_who_has_left_is_not_waited_for(device):
    body = """
  setp.gt.u32 %p0, %r0, 20; @%p0 exit; setp.le.u32 %p1, %r0, 20; vote.sync.ballot.b32 %r1, %p1, -1; st.global.u32 [%at], %r1;
"""
    out = np.zeros(32, np.uint32)
    kernel(device, body)[1, 32](out)
    assert out.tolist() == [(1 << 21) - 1] * 21 + [0] * 11


def test_lanes_that_can_never_meet_are_a_deadlock(device):
    body = "setp.lt.u32 %p0, %r0, 8; @%p0 bar.warp.sync 0xff00; @%p0 bra done; bar.warp.sync 0xff; done:"
    with pytest.raises(Fault, match=r"deadlock .* wait for lanes that exited or wait elsewhere"):
        kernel(device, body)[1, 16](np.zeros(32, np.uint32), timeout=60)


def test_warps_wait_at_a_barrier(device):
    body = """
  .shared .b32 x[128]; mov.u32 %r1, x; mad.lo.u32 %r2, %r0, 4, %r1; st.shared.u32 [%r2], %r0;
  bar.sync 0; xor.b32 %r3, %r0, 127; mad.lo.u32 %r2, %r3, 4, %r1; ld.shared.u32 %r4, [%r2]; st.global.u32 [%at], %r4;
"""
    out = np.zeros(128, np.uint32)
    kernel(device, body)[1, 128](out)
    assert out.tolist() == [127 - i for i in range(128)]


def test_functions_recurse_with_frames_of_their_own(device):
    before = """
.func (.param .u32 sum) down(.param .u32 n)
{
  .reg .b32 %r<4>; .reg .pred %p; .local .b32 kept; .param .u32 a; .param .u32 b;
  ld.param.u32 %r0, [n]; st.local.u32 [kept], %r0; setp.eq.u32 %p, %r0, 0; mov.u32 %r1, 0; @%p bra end;
  sub.u32 %r1, %r0, 1; st.param.u32 [a], %r1; call (b), down, (a); ld.param.u32 %r1, [b]; ld.local.u32 %r0, [kept];
  add.u32 %r1, %r1, %r0;
end: st.param.u32 [sum], %r1; ret;
}
"""
    body = "call (%r1), down, (%r0); st.global.u32 [%at], %r1;"
    out = np.zeros(40, np.uint32)
    kernel(device, body, before=before)[1, 40](out)
    assert out.tolist() == [i * (i + 1) // 2 for i in range(40)]


def test_printf_is_passed_on(device):
    before = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.global .b8 text[8] = {37, 117, 32, 0};"
    body = """
  .local .align 8 .b32 v; .param .b64 f; .param .b64 a; .param .b32 r; st.local.u32 [v], %r0;
  mov.u64 %d0, text; st.param.b64 [f], %d0; mov.u64 %d1, v; cvta.local.u64 %d1, %d1; st.param.b64 [a], %d1;
  call (r), vprintf, (f, a);
"""
    texts: list[str] = []
    kernel(device, body, before=before)[1, 3](np.zeros(4, np.uint32), printf=texts.append)
    assert "".join(texts) == "0 1 2 "
