"""Two tiers of code: fast first where the best takes long to make, the best from a process in the background."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import ptxemu
from ptxemu.cache import Cache
from ptxemu.device.entry import KERNEL
from ptxemu.driver import background, compile, effort, improve, jit, lowering
from ptxemu.driver.effort import Effort, cost_of
from ptxemu.driver.program import Program, Settings
from ptxemu.driver.request import Request
from ptxemu.ir.block_shape import variant_of
from ptxemu.text.source import SourceFile
from tests.support.kernel_tools import kernel

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
BLOCK = (32, 1, 1)
TIMEOUT = 120


def large_kernel(count: int = 20) -> str:
    """Integers, floats, divisions, branches and memory, above the limit that these tests set."""
    body = "\n".join(
        f"""
        div.u32 %r3, %r1, {index + 3}; mad.lo.u32 %r1, %r3, {index | 1}, %r2;
        cvt.rn.f32.u32 %f1, %r1; fma.rn.f32 %f2, %f1, 0f3F000001, %f2; div.rn.f32 %f2, %f2, 0f40400000;
        setp.lt.u32 %p1, %r1, %r2; @%p1 bra L{index}; xor.b32 %r2, %r2, %r1; L{index}:
        ld.global.u32 %r4, [%d1+{index % 32 * 4}]; add.u32 %r1, %r1, %r4;"""
        for index in range(count)
    )
    return f"""{HEAD}
.visible .entry k(.param .u64 p) {{
    .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %d<3>; .reg .f32 %f<3>;
    ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1;
    ld.global.u32 %r1, [%d1]; ld.global.u32 %r2, [%d1+128]; cvt.rn.f32.u32 %f2, %r2;
    {body}
    st.global.u32 [%d1], %r1; st.global.u32 [%d1+128], %r2; st.global.f32 [%d1+256], %f2; ret;
}}
"""


LARGE = large_kernel()
SMALL = large_kernel(1)


def run(module: ptxemu.Module) -> np.ndarray:
    values = np.arange(96, dtype=np.uint32) * 2654435761
    module["k"][1, 32](values, timeout=TIMEOUT)
    return values


@pytest.fixture(autouse=True)
def low_limit(monkeypatch) -> None:
    """Kernels count as large early, so that the tests take little time."""
    module = compile.front(LARGE)
    large, small = (cost_of(compile.prepare(m, m.entries[0], "row").graphs).best for m in (module, compile.front(SMALL)))
    monkeypatch.setattr(lowering, "FIRST_LAUNCH", (large + small) / 2)


def program(text: str, tier: str, cache: Cache | None = None) -> Program:
    return Program(SourceFile("<string>", text), Settings(tier=tier), cache or Cache(None))


def wait_for(condition) -> None:
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end, "nothing came"
        time.sleep(0.02)


@pytest.fixture
def requests(monkeypatch) -> list[tuple[Request, improve.Deliver]]:
    """What would have gone to the background compiler."""
    found: list[tuple[Request, improve.Deliver]] = []
    monkeypatch.setattr("ptxemu.driver.improve.improve", lambda request, deliver: found.append((request, deliver)))
    return found


def test_the_best_code_of_a_small_kernel_is_its_fast_code():
    module = compile.front(SMALL)
    fast, best = (compile.kernel(module, "k", compile.Options(tier=tier)) for tier in ("fast", "best"))
    assert fast.final and best.final
    assert fast == best


def test_a_large_kernel_has_two_forms_with_equal_results(monkeypatch):
    monkeypatch.setenv("PTXEMU_CACHE", "off")
    modules = [ptxemu.loads(LARGE, tier=tier) for tier in ("fast", "best")]
    fast, best = map(run, modules)
    np.testing.assert_array_equal(fast, best)
    codes = [module.program.load("k", BLOCK)[0] for module in modules]
    assert [code.final for code in codes] == [False, True]


def test_what_would_take_the_generator_longest_is_generated_fast(monkeypatch):
    """Its time grows with the square of a kernel, but for level 0."""
    monkeypatch.setenv("PTXEMU_CACHE", "off")
    efforts = []
    generate = compile.jit.compile_object
    monkeypatch.setattr(compile.jit, "compile_object", lambda *given: efforts.append(given[-1].level) or generate(*given))
    expected = run(ptxemu.loads(LARGE, tier="best"))
    small = compile.front(SMALL)
    monkeypatch.setattr(effort, "GREATEST", cost_of(compile.prepare(small, small.entries[0], "row").graphs).best)
    np.testing.assert_array_equal(run(ptxemu.loads(LARGE, tier="best")), expected)
    run(ptxemu.loads(SMALL, tier="best"))
    assert efforts == [2, 0, 2]


def test_nothing_is_asked_for_a_kernel_that_is_launched_once(requests):
    first = program(LARGE, "auto")
    first.load("k", BLOCK)
    assert not requests
    for _ in range(3):
        first.load("k", BLOCK)
    assert len(requests) == 1


def test_nothing_is_asked_for_small_kernels_and_other_tiers(requests):
    for text, tier in ((SMALL, "auto"), (LARGE, "fast")):
        small = program(text, tier)
        for _ in range(3):
            small.load("k", BLOCK)
    assert not requests


def test_a_long_launch_asks(requests, monkeypatch):
    monkeypatch.setattr("ptxemu.driver.program.LONG", 0.01)
    long = program(LARGE, "auto")
    long.load("k", BLOCK)
    ended = long.watch("k", BLOCK)
    wait_for(lambda: requests)
    ended()


def test_the_answer_is_taken_at_the_next_launch_and_kept(requests, tmp_path):
    first = program(LARGE, "auto", Cache(tmp_path / "cache"))
    fast, _ = first.load("k", BLOCK)
    assert first.load("k", BLOCK)[0] is fast
    request, deliver = requests[0]
    answer = background.answer(request)
    deliver(answer)
    best, _ = first.load("k", BLOCK)
    assert best.final and best.object == answer.object != fast.object
    again, _ = program(LARGE, "auto", Cache(tmp_path / "cache")).load("k", BLOCK)
    assert again == best


def test_code_that_cannot_be_made_better_is_not_tried_again(requests, tmp_path):
    first = program(LARGE, "auto", Cache(tmp_path / "cache"))
    fast, _ = first.load("k", BLOCK)
    first.load("k", BLOCK)
    requests.pop()[1](None)
    assert first.load("k", BLOCK)[0] is fast
    later = program(LARGE, "auto", Cache(tmp_path / "cache"))
    assert later.load("k", BLOCK)[0].object == fast.object
    later.load("k", BLOCK)
    assert not requests


def test_the_background_process_makes_what_this_one_would():
    """With the cache off; the process prints nothing and ends."""
    module = ptxemu.loads(LARGE, tier="auto")
    module.program._cache = Cache(None)
    compiled = module.program._compiled_code
    results = [run(module), run(module)]
    wait_for(lambda: compiled("k", BLOCK).better is not None)
    results.append(run(module))
    code = module.program.load("k", BLOCK)[0]
    assert code == compile.kernel(compile.front(LARGE), "k", compile.Options(variant=variant_of(BLOCK)))
    assert all((result == results[0]).all() for result in results)
    wait_for(lambda: improve._compiler.process is None)


def test_a_host_that_may_start_no_processes_keeps_the_fast_code(monkeypatch):
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError("no processes here")

    monkeypatch.setattr(improve.subprocess, "Popen", refuse)
    monkeypatch.setattr(improve, "_compiler", improve._Compiler())
    first = program(LARGE, "auto")
    codes = [first.load("k", BLOCK)[0] for _ in range(3)]
    assert not codes[0].final and codes[1] is codes[2] is codes[0]


@pytest.mark.parametrize("name", ["", "/opt/blender/blender", "/usr/sbin/uwsgi", "pythonic"])
def test_a_program_that_embeds_python_is_not_started_again(monkeypatch, name):
    monkeypatch.setattr(sys, "executable", name)
    assert not improve.possible()


CHILD = """
import os, sys, time
import numpy as np, ptxemu
from ptxemu.driver import improve, lowering
lowering.FIRST_LAUNCH = 0
module = ptxemu.loads(sys.stdin.read(), tier="auto")
values = np.arange(96, dtype=np.uint32)
for _ in range(2):
    module["k"][1, 32](values)
while improve._compiler.process is None:
    time.sleep(0.001)
print(improve._compiler.process.pid, flush=True)
{end}
"""


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("end", ["", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_the_background_process_ends_with_its_parent(end):
    environment = {**os.environ, "PTXEMU_CACHE": "off"}
    command = [sys.executable, "-c", CHILD.format(end=end)]
    done = subprocess.run(command, input=large_kernel(60), capture_output=True, text=True, timeout=TIMEOUT, env=environment)
    pid = int(done.stdout)
    wait_for(lambda: is_gone(pid))
    assert done.stderr == ""


def test_the_environment_and_the_option_choose(monkeypatch):
    monkeypatch.setenv("PTXEMU_TIER", "best")
    assert ptxemu.loads(SMALL).program.settings.tier == "best"
    assert ptxemu.loads(SMALL, tier="fast").program.settings.tier == "fast"
    monkeypatch.setenv("PTXEMU_TIER", "quick")
    with pytest.raises(ptxemu.InputError, match="PTXEMU_TIER must be one of auto, fast, best"):
        ptxemu.loads(SMALL)
    monkeypatch.delenv("PTXEMU_TIER")
    assert ptxemu.loads(SMALL).program.settings.tier == "auto"


def test_a_cached_object_that_does_not_link_is_made_again(tmp_path):
    store = Cache(tmp_path / "cache")
    first = program(SMALL, "auto", store)
    code = first.code("k", BLOCK)
    store.put(first._key("k", BLOCK, "best"), KERNEL, replace(code, object=b"no object").body)
    assert program(SMALL, "auto", store).load("k", BLOCK)[0] == code


REPEATS = {
    "nothing": ("st.global.u32 [%rd0], %r0;", False),
    "a loop": ("A: add.u32 %r0, %r0, 1; setp.lt.u32 %p1, %r0, 9; @%p1 bra A; st.global.u32 [%rd0], %r0;", True),
    "an address": ("ld.global.u32 %r1, [%rd0+4]; add.u32 %r0, %r0, %r1; st.global.u32 [%rd0+4], %r0;", True),
    "addresses side by side": ("ld.global.u32 %r1, [%rd0+4]; add.u32 %r0, %r0, %r1; st.global.u32 [%rd0], %r0;", False),
    "a surface": ("suld.b.1d.b32.trap {%r1}, [%rd0, {%r0}];", True),
}


@pytest.mark.parametrize("name", REPEATS)
def test_the_standard_pipeline_is_for_what_repeats(name: str) -> None:
    body, standard = REPEATS[name]
    module = compile.front(kernel(f"ld.param.u64 %rd0, [p]; mov.u32 %r0, %tid.x; {body} ret;", ".param .u64 p"))
    cost = cost_of(compile.prepare(module, module.entries[0], "row").graphs)
    assert effort.effort_of([cost], 2) == Effort(2, standard)
    assert effort.effort_of([cost], 1) == Effort(1, standard=False)


def test_a_code_generator_serves_one_compilation_at_a_time() -> None:
    with jit.machine_for("x86-64", 1) as one, jit.machine_for("x86-64", 1) as other:
        assert one is not other
    with jit.machine_for("x86-64", 1) as again:
        assert again in (one, other)
