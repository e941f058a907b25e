"""Declarations whose cost is in their numbers, not in their length: they are cheap, or refused at once."""

from __future__ import annotations

import resource

import pytest

import ptxemu

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
GIB = 1 << 30


def peak() -> int:
    """The most memory that the process has had so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def errors(declaration: str, body: str = "") -> list[str]:
    return [record.message for record in ptxemu.lint(f"{HEADER}{declaration}\n.entry k() {{ {body} ret; }}")]


def test_a_large_variable_takes_no_host_memory() -> None:
    before = peak()
    device = ptxemu.Device(memory="5 GiB")
    text = f"{HEADER}.global .b8 x[{3 * GIB}];\n.visible .entry k() {{ st.global.u8 [x+{3 * GIB - 1}], 7; ret; }}"
    module = ptxemu.loads(text, device=device)
    module["k"][1, 1]()
    assert module.get_global("x").array[-2:].tolist() == [0, 7]
    assert peak() - before < GIB // 2


def test_initial_values_far_apart() -> None:
    before = peak()
    device = ptxemu.Device(memory="2 GiB")
    rows = ", ".join(["{1, 2, 3}"] * 64)
    module = ptxemu.loads(f"{HEADER}.global .u8 x[64][{1 << 24}] = {{{rows}}};\n.global .u32 y = 5;", device=device)
    table = module.get_global("x").array
    assert table[:, :4].tolist() == [[1, 2, 3, 0]] * 64
    assert module.get_global("y").array == 5
    assert peak() - before < GIB // 2


def test_variables_count_against_the_device() -> None:
    device = ptxemu.Device(memory="1 GiB")
    module = ptxemu.loads(f"{HEADER}.global .b8 x[{3 * GIB}];\n.visible .entry k() {{ ret; }}", device=device)
    with pytest.raises(ptxemu.InputError, match=f"out of device memory: {3 * GIB} bytes wanted"):
        module["k"][1, 1]()


def test_a_module_may_be_aligned() -> None:
    module = ptxemu.loads(f"{HEADER}.global .align 65536 .b8 x[4] = {{1}};\n.global .u64 p = x;\n.visible .entry k() {{ ret; }}")
    assert module.get_global("x").address % 65536 == 0
    assert module.get_global("p").array == module.get_global("x").address


@pytest.mark.parametrize("space", ["global", "shared", "local", "param"])
@pytest.mark.parametrize("extents", ["[65536]" * 40, f"[{(1 << 64) - 1}]", "[1099511627777]", "[2]" * 5000])
def test_extents_without_bound(space: str, extents: str) -> None:
    declaration = f".{space} .b8 x{extents};"
    found = errors(declaration) if space in ("global", "shared") else errors("", declaration)
    assert found == ["'x' takes more than 1099511627776 bytes"]


def test_parameters_without_bound() -> None:
    assert "'s' takes more than 1099511627776 bytes" in errors(".func f(.param .b8 s[1099511627777]);")


@pytest.mark.parametrize("kind", ["surfref", "texref", "samplerref"])
def test_tables_of_handles_are_bounded(kind: str) -> None:
    module = ptxemu.loads(f"{HEADER}.global .{kind} s[1000000000];\n.visible .entry k() {{ ret; }}")
    with pytest.raises(ptxemu.InputError, match="the handle table is full"):
        module["k"][1, 1]()


def test_tables_of_handles_are_bounded_together() -> None:
    arrays = "\n".join(f".global .surfref s{index}[4000000000];" for index in range(3))
    with pytest.raises(ptxemu.InputError, match="the handle table is full: the module declares 12000000000"):
        ptxemu.loads(f"{HEADER}{arrays}\n.visible .entry k() {{ ret; }}")


def test_a_table_of_functions() -> None:
    functions = " ".join(f".func f{index}() {{ ret; }}" for index in range(300))
    names = ", ".join(f"f{index}" for index in range(300))
    module = ptxemu.loads(f"{HEADER}{functions}\n.global .u64 table[400] = {{{names}}};\n.visible .entry k() {{ ret; }}")
    table = module.get_global("table").array.tolist()
    assert len(set(table[:300])) == 300
    assert 0 not in table[:300] and table[300:] == [0] * 100
