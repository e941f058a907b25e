"""Constants for the runtime: LLVM lays out the structs as the C compiler does, and no field is forgotten."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from ptxemu._runtime import ffi
from ptxemu.lower.core.site import site_literal, site_type

SITES = [name for name in ffi.list_types()[0] if name.endswith("_site")]


def test_there_are_sites() -> None:
    assert {"pe_atom_site", "pe_copy_site", "pe_mma_site", "pe_red_site", "pe_surface_site"} <= set(SITES)


@pytest.mark.parametrize("struct", SITES)
@pytest.mark.parametrize("triple", ["x86_64-linux-gnu", "aarch64-linux-gnu"])
def test_llvm_and_c_agree_on_the_layout(struct: str, triple: str) -> None:
    layouts = {
        "x86_64-linux-gnu": "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
        "aarch64-linux-gnu": "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128",
    }
    module = llvm.parse_assembly(f"%s = type {site_type(struct)}\n@g = global %s zeroinitializer\n")
    kind = module.get_global_variable("g").global_value_type
    data = llvm.create_target_data(layouts[triple])
    fields = ffi.typeof(struct).fields
    assert data.get_abi_size(kind) == ffi.sizeof(struct)
    assert [data.get_element_offset(kind, index) for index in range(len(fields))] == [field.offset for _, field in fields]


@pytest.mark.parametrize("struct", SITES)
def test_the_position_comes_first(struct: str) -> None:
    """Threaded code writes it there (lower/functions/steps.py)."""
    name, field = ffi.typeof(struct).fields[0]
    assert (name, field.offset, ffi.sizeof(field.type)) == ("pos", 0, 4)


def test_literals_follow_the_names_and_not_their_order() -> None:
    values = {"flags": 8, "sums": 7, "order": 6, "system": 5, "count": 4, "space": 3, "type": 2, "op": 1, "pos": 9}
    assert site_literal("pe_atom_site", values) == "{ i32 9, i16 1, i16 2, i16 3, i16 4, i32 5, i32 6, i32 7, i32 8 }"


def test_arrays_are_nested() -> None:
    text = site_literal("pe_red_site", {"pos": 1, "op": 2, "type": 3, "flags": 4, "bias": 5, "window": [6, 7, 8, 9]})
    assert text == "{ i32 1, i16 2, i16 3, i32 4, i64 5, [4 x i64] [i64 6, i64 7, i64 8, i64 9] }"


@pytest.mark.parametrize("values", [{"pos": 1, "op": 2}, {"pos": 1, "op": 2, "space": 3, "size": 4}])
def test_a_field_too_few_or_too_many_is_an_error(values: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="pe_mbarrier_site has the fields pos, op, space, relaxed, not "):
        site_literal("pe_mbarrier_site", values)
