"""Several PTX files as one program: names of each file and of all, and every error at its place in its file."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.cli import run as command

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = ".reg .b32 %r<9>; .reg .b64 %d<9>;"
START = f"{REGISTERS} ld.param.u64 %d1, [out];"
DECLARED = ".extern .func (.param .b32 r) twice (.param .b32 x);"
TWICE = f"""
.visible .func (.param .b32 r) twice (.param .b32 x)
{{ {REGISTERS} ld.param.b32 %r1, [x]; add.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }}"""


def entry(body: str, name: str = "k") -> str:
    return f".visible .entry {name} (.param .u64 out) {{ {START}\n{body}\nret; }}"


def linked(*texts: str, strict: bool = True) -> ptxemu.Module:
    names = [f"{chr(97 + index)}.ptx" for index in range(len(texts))]
    return ptxemu.loads([HEADER + text for text in texts], filename=names, strict=strict)


def run(*texts: str, name: str = "k", words: int = 1) -> list[int]:
    out = np.zeros(words, np.uint32)
    linked(*texts)[name][1, 1](out)
    return out.tolist()


CALL = "{ .param .b32 a, b; st.param.b32 [a], 21; call (b), twice, (a); ld.param.b32 %r1, [b]; } st.global.u32 [%d1], %r1;"
CALLER = DECLARED + entry(CALL)


@pytest.mark.parametrize("texts", [(CALLER, TWICE), (TWICE, CALLER), (CALLER, ".global .u32 other;", TWICE)])
def test_calls(texts: tuple[str, ...]) -> None:
    assert run(*texts) == [42]


def test_functions_that_call_each_other_across_files() -> None:
    def half(name: str, other: str, extra: int) -> str:
        signature = "(.param .b32 r) {} (.param .b32 n)"
        return f"""
.extern .func {signature.format(other)};
.visible .func {signature.format(name)} {{ {REGISTERS} .reg .pred %p; ld.param.b32 %r1, [n]; mov.u32 %r2, 0;
  setp.eq.u32 %p, %r1, 0; @%p bra done;
  {{ .param .b32 a, b; sub.u32 %r1, %r1, 1; st.param.b32 [a], %r1; call (b), {other}, (a); ld.param.b32 %r2, [b]; }}
done: add.u32 %r2, %r2, {extra}; st.param.b32 [r], %r2; ret; }}"""

    caller = CALLER.replace("twice", "even").replace("21", "5").replace("x)", "n)")
    assert run(half("even", "odd", 1) + caller.partition(";")[2], half("odd", "even", 100)) == [303]


def test_variables() -> None:
    user = ".extern .global .u32 value; .extern .const .u32 table[]; .extern .global .b8 bytes[8];"
    body = "ld.global.u32 %r1, [value]; ld.const.u32 %r2, [table+4]; ld.global.u32 %r3, [bytes+4]; add.u32 %r1, %r1, %r2;"
    owner = ".visible .global .u32 value = 40; .visible .const .u32 table[2] = {1, 2}; .visible .global .u32 bytes[2] = {0, 100};"
    assert run(user + entry(f"{body} add.u32 %r1, %r1, %r3; st.global.u32 [%d1], %r1;"), owner) == [142]


def test_addresses_in_initial_values() -> None:
    user = ".extern .global .u32 value; .global .u64 pointer = generic(value);"
    body = "ld.global.u64 %d2, [pointer]; ld.u32 %r1, [%d2]; st.global.u32 [%d1], %r1;"
    assert run(user + entry(body), ".visible .global .u32 value = 7;") == [7]


def test_a_function_through_its_address() -> None:
    prototype = "f: .callprototype (.param .b32 _) _ (.param .b32 _);"
    body = f"{prototype} mov.u64 %d2, twice; call (%r1), %d2, (21), f; st.global.u32 [%d1], %r1;"
    assert run(DECLARED + entry(body), TWICE) == [42]


def test_names_without_linkage_belong_to_their_file() -> None:
    def file(number: int) -> str:
        own = f".global .u32 value = {number}; .func (.reg .b32 r) get () {{ .shared .u32 s; ld.global.u32 r, [value]; ret; }}"
        return own + entry("call (%r1), get; st.global.u32 [%d1], %r1;", f"k{number}")

    texts = [file(number) for number in range(3)]
    assert [run(*texts, name=f"k{number}") for number in range(3)] == [[0], [1], [2]]


def test_a_private_name_beside_a_public_one() -> None:
    first = ".global .u32 value = 1;" + entry("ld.global.u32 %r1, [value]; st.global.u32 [%d1], %r1;", "one")
    second = ".visible .global .u32 value = 2;" + entry("ld.global.u32 %r1, [value]; st.global.u32 [%d1], %r1;", "two")
    assert [run(first, second, name=name) for name in ("one", "two")] == [[1], [2]]
    assert linked(first, second).get_global("value").array == 2


READ = entry("ld.global.u32 %r1, [value]; st.global.u32 [%d1], %r1;")


@pytest.mark.parametrize(("definitions", "value"), [
    ((".weak .global .u32 value = 1;", ".visible .global .u32 value = 2;"), 2),
    ((".visible .global .u32 value = 2;", ".weak .global .u32 value = 1;"), 2),
    ((".weak .global .u32 value = 1;", ".weak .global .u32 value = 1;"), 1),
    ((".common .global .u32 value;", ".common .global .u32 value;"), 0),
    ((".common .global .u32 value;", ".visible .global .u32 value = 2;"), 2),
])  # fmt: skip
def test_definitions_that_give_way(definitions: tuple[str, ...], value: int) -> None:
    assert run(".extern .global .u32 value;" + READ, *definitions) == [value]


def test_weak_functions_are_one() -> None:
    weak = TWICE.replace(".visible", ".weak")
    assert run(weak + entry(CALL), weak) == [42]
    tripled = TWICE.replace("add.u32 %r1, %r1, %r1", "mul.lo.u32 %r1, %r1, 3")
    assert run(weak + entry(CALL), tripled) == [63]


def test_dynamic_shared_memory_is_one() -> None:
    buffer = ".extern .shared .align 16 .b8 buffer[];"
    store = f"{buffer} .visible .func put () {{ {REGISTERS} mov.u32 %r1, 9; st.shared.u32 [buffer+4], %r1; ret; }}"
    body = entry("call put; ld.shared.u32 %r1, [buffer+4]; st.global.u32 [%d1], %r1;")
    out = np.zeros(1, np.uint32)
    linked(f"{buffer} .extern .func put ();{body}", store)["k"][1, 1](out, shared=64)
    assert out.tolist() == [9]


def test_functions_of_the_runtime_need_no_definition() -> None:
    malloc = ".extern .func (.param .b64 r) malloc (.param .b64 s);"
    body = entry("call (%d2), malloc, (16); st.u32 [%d2], 5; ld.u32 %r1, [%d2]; st.global.u32 [%d1], %r1;")
    assert run(malloc + body, malloc) == [5]


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(("texts", "message"), [
    (("\n" + TWICE, "\n\n" + TWICE), r"b\.ptx:7:\d+: error: 'twice' is defined twice(.|\n)*it is defined in a\.ptx:6 too"),
    ((".visible .global .u32 v;", "\n.visible .global .u32 v;"), r"b\.ptx:5:\d+: error: 'v' is defined twice(.|\n)*a\.ptx:4 too"),
    ((CALLER, ""), r"a\.ptx:5:\d+: error: 'twice' is not defined in any of the files"),
    (("", ".extern .global .u32 value;" + READ), r"b\.ptx:5:\d+: error: 'value' is not defined in any of the files"),
    ((".global .u32 other;", ".extern .global .u32 v; .global .u64 p = v;"), r"b\.ptx:4:\d+: error: 'v' is not defined in any"),
    ((CALLER, TWICE.replace(".b32 x", ".b64 x")), r"a\.ptx:4:\d+: error: 'twice' is declared differently(.|\n)*b\.ptx:5"),
    ((".extern .global .u32 v;", ".visible .const .u32 v;"), r"a\.ptx:4:\d+: error: 'v' is declared differently"),
    ((".extern .global .u32 v;", ".visible .global .u64 v;"), r"a\.ptx:4:\d+: error: 'v' is declared differently"),
    ((".extern .func v ();", ".visible .global .u64 v;"), r"a\.ptx:4:\d+: error: 'v' is declared differently"),
    (("", "\n.visible .entry k () { bad; }"), r"b\.ptx:5:\d+: error: unknown instruction 'bad'"),
])  # fmt: skip
def test_errors(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(ptxemu.PtxError, match=message):
        linked(*texts)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(("before", "line"), [("", 6), (".global .u64 pointer = generic(value);", 5)])
def test_one_file_that_does_not_define_what_it_uses(engine: str, before: str, line: int) -> None:
    """It is checked and described; its kernels cannot run."""
    declared = ".extern .global .u32 value;\n" + before
    text = HEADER + declared + (READ if not before else entry("st.global.u32 [%d1], 1;"))
    with ptxemu.Device("16 MiB", engine=engine) as device:
        module = ptxemu.loads(text, filename="a.ptx", device=device)
        with pytest.raises(ptxemu.InputError, match=rf"a\.ptx:{line}: 'value' is not defined: it is \.extern"):
            module["k"][1, 1](np.zeros(1, np.uint32))
        unused = HEADER + declared.partition("\n")[0] + entry("st.global.u32 [%d1], 1;")
        ptxemu.loads(unused, device=device)["k"][1, 1](out := np.zeros(1, np.uint32))
    assert out == [1]


def test_faults_name_the_file() -> None:
    other = f".visible .func bad ()\n{{ {REGISTERS}\nmov.u64 %d1, 16;\nld.global.u32 %r1, [%d1]; st.global.u32 [%d1], 1; ret; }}"
    with pytest.raises(ptxemu.Fault, match=r"kernel `k` at b\.ptx:7"):
        linked(".extern .func bad ();" + entry("call bad;"), other)["k"][1, 1](np.zeros(1, np.uint32))


def test_what_cannot_be_linked() -> None:
    with pytest.raises(ptxemu.InputError, match="texmode_independent"):
        ptxemu.loads([HEADER, HEADER.replace("sm_80", "sm_80, texmode_independent")])
    with pytest.raises(ptxemu.InputError, match="only files of PTX"):
        ptxemu.loads([HEADER, ""], filename=["a.ptx", "b.sass"])
    with pytest.raises(ptxemu.InputError, match="at least one"):
        ptxemu.loads([])
    with pytest.raises(ptxemu.InputError, match="as many names"):
        ptxemu.loads([HEADER, HEADER], filename=["a.ptx"])


# ---------------------------------------------------------------- files


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    paths = tmp_path / "caller.ptx", tmp_path / "twice.ptx"
    for path, text in zip(paths, (CALLER, TWICE), strict=True):
        path.write_text(HEADER + text)
    return str(paths[0]), str(paths[1])


def test_files(files: tuple[str, str]) -> None:
    out = np.zeros(1, np.uint32)
    ptxemu.load(files)["k"][1, 1](out)
    assert out.tolist() == [42]


def test_run_and_info(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["run", *files, "--grid", "1", "--block", "1", "--arg", "out=zeros:u32:1"]) == 0
    assert capsys.readouterr().out.endswith("out: uint32[1], 1 of 1 changed, all 42\n")
    assert command(["info", *files, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [kernel["name"] for kernel in facts["kernels"]] == ["k"]
    assert facts["kernels"][0]["supported"]
    assert command(["info", files[0], files[0]]) == 2
    assert "'k' is defined twice" in capsys.readouterr().err


def test_a_case(files: tuple[str, str], tmp_path: Path) -> None:
    case = tmp_path / "case.toml"
    launch = 'entry = "k"\ngrid = 1\nblock = 1\nargs = {out = "out"}\n'
    expected = '[expect.outputs.out]\nvalues = [42]\ndtype = "u32"\n'
    case.write_text(f'ptx = ["caller.ptx", "twice.ptx"]\n{launch}[buffers.out]\nzeros = {{dtype = "u32", shape = 1}}\n{expected}')
    assert command(["test", str(case)]) == 0


@pytest.mark.skipif(shutil.which("ptxas") is None or shutil.which("nvlink") is None, reason="ptxas or nvlink is not installed")
@pytest.mark.parametrize(("texts", "links"), [
    ((CALLER, TWICE), True), ((CALLER, ""), False), ((TWICE, TWICE), False), ((TWICE.replace(".visible", ".weak"), TWICE), True),
    ((".common .global .u32 v;", ".common .global .u32 v;"), True), ((".global .u32 v;", ".visible .global .u32 v;"), True),
])  # fmt: skip
def test_as_nvlink_has_it(texts: tuple[str, ...], links: bool, tmp_path: Path) -> None:
    objects = []
    for index, text in enumerate(texts):
        path = tmp_path / f"{index}.ptx"
        path.write_text(HEADER + text)
        objects.append(path.with_suffix(".o"))
        subprocess.run(["ptxas", "-c", "-arch", "sm_80", "-o", objects[-1], path], check=True, timeout=60)
    done = subprocess.run(["nvlink", "-arch", "sm_80", "-o", tmp_path / "all", *objects], capture_output=True, timeout=60)
    assert (done.returncode == 0) == links, done.stdout + done.stderr
