"""The interpreter on the programs that the dialects are tested with."""

from __future__ import annotations

from importlib import import_module

import pytest

import ptxemu
from ptxemu.interpreter.image import load_dialect
from ptxemu.interpreter.translate import METHODS
from ptxemu.lower.core.effects import EFFECTS
from tests.dialects.test_sass_surfaces import example  # noqa: F401  (a fixture)
from tests.support import ctm_harness, sass_harness, visa_harness

pytestmark = pytest.mark.sampled(3)

HARNESSES = (sass_harness, visa_harness, ctm_harness)
MODULES = (
    "test_sass", "test_sass_memory", "test_sass_rules", "test_sass_surfaces",
    "test_visa", "test_visa_atomic", "test_visa_control", "test_visa_rules", "test_visa_surfaces",
    "test_ctm", "test_ctm_memory", "test_ctm_rules", "test_cross_dialects", "test_cross_stores",
)  # fmt: skip
LAUNCH_NOTHING = {
    "test_compiles_for_every_machine", "test_errors", "test_legality_table", "test_operands_of_every_operation",
    "test_sizes_and_offsets", "test_types_of_every_operation", "test_where_operands_may_lie", "test_wrong_text_is_diagnosed",
}  # fmt: skip
"""Long tests for which no engine matters."""


for place in MODULES:
    module = import_module(f"tests.dialects.{place}")
    chosen = [name for name in vars(module) if name.startswith("test_") and name not in LAUNCH_NOTHING]
    globals().update({f"{name}_{place}": vars(module)[name] for name in chosen})


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests launch, they launch on the interpreter, and in modules to which nothing is bound yet."""
    for harness in HARNESSES:
        harness.module.cache_clear()
    for device in (ptxemu.default_device(), *(harness.device() for harness in HARNESSES)):
        monkeypatch.setattr(device, "engine", "interpreter")


def test_every_row_of_a_dialect_has_a_method() -> None:
    for name in ("sass", "visa", "ctm"):
        import_module(f"ptxemu.dialects.{name}.front")
        load_dialect(name)
    own = {lowering for lowering, function in EFFECTS.items() if function.__module__.startswith("ptxemu.dialects")}
    assert own and own <= METHODS.keys()
