"""What came of a launch, in words and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ptxemu.case.array_files import save_array
from ptxemu.case.arrays import Array
from ptxemu.case.compare import Comparison, compare
from ptxemu.case.resources import Resources
from ptxemu.cli import results
from ptxemu.cli.inputs import Wanted
from ptxemu.device.launch import LaunchResult
from ptxemu.text.json_text import json_text
from ptxemu.text.symbols import plain_name

if TYPE_CHECKING:
    from ptxemu.cli.fidelity import Fidelity


class Outcome:
    """What came of a launch; ``fidelity`` is what is known of the bits of results, if that is asked for."""

    def __init__(
        self,
        kernel: str,
        done: LaunchResult,
        resources: Resources,
        wanted: Wanted,
        printed: Sequence[str],
        fidelity: Fidelity | None = None,
    ) -> None:
        self._fidelity = fidelity
        self._kernel, self._done, self._wanted = kernel, done, wanted
        self._arrays = resources.arrays()
        self._before = {name: np.asarray(resources.inputs[name]) for name in self._arrays}
        self._printed = [results.select(text, self._arrays, "--print") for text in printed]
        expected = wanted.expected.items()
        self._comparisons = [compare(name, self._arrays[name], array, wanted.tolerance) for name, array in expected]

    @property
    def passed(self) -> bool:
        return all(comparison.passed for comparison in self._comparisons)

    def save(self) -> None:
        for name, path in self._wanted.files.items():
            save_array(path, self._arrays[name], f"--out {name}")

    def show(self, stages: Mapping[str, float]) -> None:
        """In words; ``stages`` are those whose seconds are to be shown."""
        click.echo(f"{plain_name(self._kernel)}: {self._done.ctas} blocks in {duration(self._done.seconds)}")
        show_stages(stages)
        if self._fidelity is not None:
            click.echo(f"  {self._fidelity.line}")
        for name, path in self._wanted.files.items():
            click.echo(f"  {results.summary(name, self._arrays[name])} saved to {path}")
        for comparison in self._comparisons:
            click.echo(f"  {verdict(comparison, self._arrays[comparison.name])}")
        for name in self._untold():
            changed = f", {self._changed(name)} of {self._arrays[name].size} changed" if name in self._before else ""
            found = results.in_words(results.statistics(self._arrays[name]))
            click.echo(f"  {results.summary(name, self._arrays[name])}{changed}" + (f", {found}" if found else ""))
        for name, array in self._printed:
            show_array(name, array)

    def show_json(self, stages: Mapping[str, float], output: str, warnings: Sequence[str], checked: Mapping[str, Any]) -> None:
        """As a JSON object; ``output`` is what the kernel printed, ``checked`` what there is to say of checkers."""
        facts = {
            "kernel": self._kernel,
            "blocks": self._done.ctas,
            "seconds": self._done.seconds,
            "wall_seconds": stages,
            "output": output,
            "warnings": list(warnings),
            "arrays": {name: self._facts(name) for name in self._arrays},
            "printed": {name: array.tolist() for name, array in self._printed},
            "passed": self.passed,
            **({} if self._fidelity is None else self._fidelity.facts),
            **checked,
        }
        click.echo(json_text(facts))

    def _untold(self) -> list[str]:
        """Arrays that the kernel changed and that no option is about."""
        told = {*self._wanted.files, *self._wanted.expected, *(name.partition("[")[0] for name, _ in self._printed)}
        return [name for name in self._arrays if name not in told and self._changed(name)]

    def _changed(self, name: str) -> int:
        """How many elements have other bits than before."""
        after, before = self._arrays[name], self._before[name]
        if after.dtype.itemsize not in (1, 2, 4, 8):
            return int(after.tobytes() != before.tobytes())
        bits = np.dtype(f"u{after.dtype.itemsize}")
        return int(np.count_nonzero(np.ascontiguousarray(after).view(bits) != np.ascontiguousarray(before).view(bits)))

    def _facts(self, name: str) -> dict[str, Any]:
        array = self._arrays[name]
        facts: dict[str, Any] = {"dtype": array.dtype.name, "shape": list(array.shape), "changed": self._changed(name)}
        facts |= results.statistics(array)
        if name in self._wanted.files:
            facts["file"] = str(self._wanted.files[name])
        for comparison in self._comparisons:
            if comparison.name == name:
                facts |= {"passed": comparison.passed, "message": comparison.message}
        return facts


def show_stages(stages: Mapping[str, float]) -> None:
    """The seconds of stages; what came from the cache has not been parsed and checked."""
    if spent := [f"{name} {duration(seconds)}" for name, seconds in stages.items() if seconds]:
        click.echo("  " + ", ".join(spent))


def show_array(name: str, array: Array) -> None:
    """Print an array, as a picture if it is one."""
    found = results.in_words(results.statistics(array)) if array.ndim else ""
    click.echo(f"  {results.summary(name, array)}" + (f", {found}" if found else ""))
    click.echo(results.picture(array) or results.listing(array))


def verdict(comparison: Comparison, array: Array) -> str:
    """How a result compares, on one line."""
    detail = f" ({comparison.message})" if comparison.message else ""
    return f"{results.summary(comparison.name, array)} {'ok' if comparison.passed else 'FAILED'}{detail}"


def duration(seconds: float) -> str:
    """A time as people read it: ``1.2 ms``."""
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
