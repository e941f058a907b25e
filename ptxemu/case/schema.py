"""The case file: what it may say (docs/cases.md), read and checked before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from ptxemu.case.arguments import Argument, check_names, read_argument
from ptxemu.case.discovery import case_file
from ptxemu.case.images import (
    RegisterSpec,
    SamplerSpec,
    SurfaceSpec,
    TextureSpec,
    read_sampler,
    read_surface,
    read_texture,
)
from ptxemu.case.matrix import at_point, split_point
from ptxemu.case.sources import ArraySpec, read_array
from ptxemu.case.table import Table, read_toml
from ptxemu.case.tolerance import LIMITS, Tolerance, read_tolerance
from ptxemu.dialects import DIALECTS
from ptxemu.ir.numerics import checked_like
from ptxemu.text.errors import InputError, shown

LAUNCH_KEYS = ("entry", "grid", "block", "shared", "timeout", "cooperative", "cluster", "args", "bind")


class LaunchSpec(Struct, frozen=True):
    """One launch; ``bind`` gives what opaque variables (``name``, or ``name[3]`` in an array) refer to."""

    entry: str | None
    grid: Any
    block: Any
    shared: int
    timeout: float | None
    cooperative: bool
    cluster: Any
    args: dict[str, Argument]
    bind: dict[str, str]
    where: str


class Output(Struct, frozen=True):
    """The expected contents of one buffer or surface: a file, an expression, or None for the reference script's."""

    source: ArraySpec | str | None
    tolerance: Tolerance


class Case(Struct, frozen=True):
    """A case file. ``tags`` choose it in a suite, where it is not run at all because of ``skip``, must fail because of ``xfail``,
    and is skipped where ``unsupported`` is ``skip`` and ptxemu does not do what it needs."""

    path: Path
    title: str
    programs: tuple[Path, ...]
    strict: bool
    dialect: str | None
    like: str
    options: dict[str, str | int | bool]
    buffers: dict[str, ArraySpec]
    surfaces: dict[str, SurfaceSpec | RegisterSpec]
    textures: dict[str, TextureSpec]
    samplers: dict[str, SamplerSpec]
    launches: list[LaunchSpec]
    reference: Path | None
    tolerance: Tolerance
    outputs: dict[str, Output]
    save: dict[str, str] = {}
    tags: tuple[str, ...] = ()
    skip: str | None = None
    xfail: str | None = None
    unsupported: str = "error"

    @property
    def checks(self) -> bool:
        """Whether the case says what to expect."""
        return self.reference is not None or bool(self.outputs)

    def tolerance_of(self, name: str) -> Tolerance:
        """How far an array may be off."""
        return self.outputs[name].tolerance if name in self.outputs else self.tolerance


def read_case(path: Path) -> Case:
    """Read a case file, or the one in a folder; of a sweep, the point that is named behind it in brackets."""
    path, point = split_point(path)
    path = case_file(path)
    return case_of(at_point(read_toml(path), point), path, point)


def case_of(root: Table, path: Path, point: str | None = None) -> Case:
    """The case that the table of a case file describes, at a point of its sweep if it is one."""
    folder = path.parent
    buffers = {key: read_array(table, folder) for key, table in _named(root, "buffers")}
    launches = _launches(root, buffers, folder)
    expect = root.table("expect")
    reference = expect.get("reference", str, "")
    tolerance = _tolerance(expect.table("tolerance"))
    outputs = {key: _output(table, folder, tolerance) for key, table in _named(expect, "outputs")}
    expect.finish()
    title = root.get("title", str, path.absolute().parent.name if path.name == "case.toml" else path.stem)
    case = Case(
        path=path,
        title=title if point is None else f"{title}[{point}]",
        programs=tuple(folder / name for name in _programs(root, folder)),
        strict=root.get("strict", bool, False),
        dialect=root.get("dialect", str, "") or None,
        like=_like(root),
        options={key: _option(root.table("options"), key) for key in root.table("options").names()},
        buffers=buffers,
        surfaces={key: read_surface(table, folder) for key, table in _named(root, "surfaces")},
        textures={key: read_texture(table, folder) for key, table in _named(root, "textures")},
        samplers={key: read_sampler(table) for key, table in _named(root, "samplers")},
        launches=launches,
        reference=folder / reference if reference else None,
        tolerance=tolerance,
        outputs=outputs,
        save={key: root.table("save").need(key, str) for key in root.table("save").names()},
        tags=_tags(root),
        skip=_reason(root, "skip"),
        xfail=_reason(root, "xfail"),
        unsupported=_one_of(root, "unsupported", ("error", "skip")),
    )
    root.finish(LAUNCH_KEYS if "launch" not in root else ())
    _check_names(case)
    return case


def _like(root: Table) -> str:
    try:
        return checked_like(root.get("like", str, ""))
    except InputError as error:
        raise root.fail("like", str(error).removeprefix("like ")) from None


def _named(table: Table, key: str) -> list[tuple[str, Table]]:
    """The tables below one of the tables, by name."""
    group = table.table(key)
    return [(name, group.table(name)) for name in group.names()]


def _tags(root: Table) -> tuple[str, ...]:
    tags = root.get("tags", list, [])
    if not all(isinstance(tag, str) and tag for tag in tags):
        raise root.fail("tags", "must be a list of texts")
    return tuple(tags)


def _reason(root: Table, key: str) -> str | None:
    """Why something is so, if it is."""
    if key not in root:
        return None
    reason = root.need(key, str)
    if not reason:
        raise root.fail(key, "must say why")
    return reason


def _one_of(table: Table, key: str, choices: tuple[str, ...]) -> str:
    value = table.get(key, str, choices[0])
    if value not in choices:
        raise table.fail(key, f"must be one of {', '.join(choices)}, not {shown(value)}")
    return value


def _programs(root: Table, folder: Path) -> list[str]:
    """The program's files: what ``ptx`` or ``program`` says, else the only file called ``kernel``."""
    if "program" in root and "ptx" in root:
        raise root.fail("program", "and ptx name the same thing: give one")
    found = sorted(file.name for file in folder.glob("kernel.*") if any(file.suffix in d.suffixes for d in DIALECTS.values()))
    default = "kernel.ptx" if len(found) != 1 else found[0]
    key = "program" if "program" in root else "ptx"
    if isinstance(root.data.get(key), list):
        names = root.get(key, list, [])
        if not names or not all(isinstance(name, str) for name in names):
            raise root.fail(key, "must be the name of a file or a list of such")
        return [str(name) for name in names]
    return [root.get(key, str, default)]


def _option(table: Table, key: str) -> str | int | bool:
    value = table.any(key)
    if not isinstance(value, str | int | bool):
        raise table.fail(key, "must be a text, a number or a truth value")
    return value


def _launches(root: Table, buffers: dict[str, ArraySpec], folder: Path) -> list[LaunchSpec]:
    if "launch" in root:
        for key in LAUNCH_KEYS:
            if key in root.data:
                raise root.fail(key, "goes into a [[launch]] table when the case has any")
        launches = [_launch(table, buffers, folder) for table in root.tables("launch")]
        if not launches:
            raise root.fail("launch", "is empty")
        return launches
    launch = Table(root.file, "", {key: root.data[key] for key in LAUNCH_KEYS if key in root.data})
    return [_launch(launch, buffers, folder)]


def _launch(table: Table, buffers: dict[str, ArraySpec], folder: Path) -> LaunchSpec:
    args = {key: read_argument(table.table("args"), key, buffers, folder) for key in table.table("args").names()}
    launch = LaunchSpec(
        entry=table.get("entry", str, "") or None,
        grid=table.any("grid"),
        block=table.any("block"),
        shared=table.get("shared", int, 0),
        timeout=table.need("timeout", float) if "timeout" in table else None,
        cooperative=table.get("cooperative", bool, False),
        cluster=table.any("cluster") if "cluster" in table else None,
        args=args,
        bind={key: table.table("bind").need(key, str) for key in table.table("bind").names()},
        where=table.where(),
    )
    table.finish(("args", "bind"))
    return launch


def _tolerance(table: Table) -> Tolerance:
    table.finish(LIMITS)
    return read_tolerance(table)


def _output(table: Table, folder: Path, default: Tolerance) -> Output:
    limits = {key: table.data[key] for key in LIMITS if key in table}
    tolerance = read_tolerance(table) if limits else default
    source: ArraySpec | str | None = None
    if "expression" in table:
        source = table.need("expression", str)
        table.finish()
    else:
        rest: dict[str, Any] = {key: table.data[key] for key in table.data if key not in limits}
        if rest:
            source = read_array(Table(table.file, table.place, rest), folder)
    return Output(source, tolerance)


def _check_names(case: Case) -> None:
    handles = _handles(case)
    outputs = {*case.buffers, *case.surfaces}
    for launch in case.launches:
        for key, value in launch.args.items():
            check_names(value, case.buffers, handles, f"{launch.where}: args.{key}")
        for key, name in launch.bind.items():
            if name not in handles:
                raise InputError(f"{launch.where}: bind.{key}: no surface, texture or sampler is named '{name}'")
    for texture in case.textures.values():
        if isinstance(texture.data, str) and texture.data not in outputs:
            raise InputError(f"{texture.where}.data: no array or surface is named '{texture.data}'")
    scalars = {key for launch in case.launches for key in launch.args}
    for table, keys in (("expect.outputs", case.outputs), ("save", case.save)):
        for key in keys:
            if key not in outputs:
                kind = (
                    "is read-only"
                    if key in handles
                    else "is a scalar"
                    if key in scalars
                    else "is not an array or surface of the case"
                )
                raise InputError(f"{case.path}: {table}.{key}: {kind}")


def _handles(case: Case) -> dict[str, str]:
    """What kernels reach by handles, with the kind of each; names are unique among them and the arrays."""
    kinds = dict.fromkeys(case.buffers, "array")
    for kind, names in (("surface", case.surfaces), ("texture", case.textures), ("sampler", case.samplers)):
        for name in names:
            if kinds.setdefault(name, kind) != kind:
                article = "an" if kinds[name] == "array" else "a"
                raise InputError(f"{case.path}: {kind}s.{name}: {article} {kinds[name]} has this name already")
    return {name: kind for name, kind in kinds.items() if kind != "array"}
