"""The case file: what it may say (docs/guide.md, "Case files"), read and checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptxemu.case.arrays import GENERATORS, Array, load_npy, load_png, values
from ptxemu.case.table import Table, read_toml
from ptxemu.dialects import DIALECTS
from ptxemu.errors import InputError

SOURCES = (*GENERATORS, "values", "npy", "png")
LAUNCH_KEYS = ("entry", "grid", "block", "shared", "timeout", "cooperative", "args", "bind")
EXTENTS = ("width", "height", "depth", "layers")
SURFACE_OPTIONS: dict[str, type[int] | type[str] | type[bool]] = {
    "levels": int, "pitch": int, "pitch_align": int, "block_height_log2": int, "block_depth_log2": int, "gob_order": str,
    "enabled": bool,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Name:
    """An argument that names a buffer or a surface of the case."""

    name: str


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """Where an array comes from: ``kind`` is one of SOURCES, ``spec`` its table or path."""

    kind: str
    spec: Any
    folder: Path
    where: str

    def make(self) -> Array:
        """The array, read or generated."""
        if self.kind == "npy":
            return load_npy(self.folder / self.spec, self.where)
        if self.kind == "png":
            return load_png(self.folder / self.spec, self.where)
        if self.kind == "values":
            return values(self.spec, self.where)
        return GENERATORS[self.kind][0](self.spec, self.where)


@dataclass(frozen=True, slots=True)
class SurfaceSpec:
    """A surface: its geometry, format and layout, and either its extents or its first contents."""

    geometry: str
    format: str
    layout: str
    extents: dict[str, int]
    data: ArraySpec | None
    options: dict[str, Any]
    where: str


Argument = Name | bytes | int | float


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One launch; ``bind`` gives the surfaces of surface variables (``name``, or ``name[3]`` in an array)."""

    entry: str | None
    grid: Any
    block: Any
    shared: int
    timeout: float | None
    cooperative: bool
    args: dict[str, Argument]
    bind: dict[str, str]
    where: str


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a floating-point result may be off: within ``abs + rel * |expected|``, or within ``ulp`` steps."""

    abs: float = 0.0
    rel: float = 0.0
    ulp: int = 0


@dataclass(frozen=True, slots=True)
class Output:
    """The expected contents of one buffer or surface: a file, an expression, or None for the reference script's."""

    source: ArraySpec | str | None
    tolerance: Tolerance


@dataclass(frozen=True, slots=True)
class Case:
    """A case file."""

    path: Path
    title: str
    program: Path
    strict: bool
    dialect: str | None
    options: dict[str, str | int | bool]
    buffers: dict[str, ArraySpec]
    surfaces: dict[str, SurfaceSpec]
    launches: list[LaunchSpec]
    reference: Path | None
    tolerance: Tolerance
    outputs: dict[str, Output]
    save: dict[str, str] = field(default_factory=dict)

    @property
    def checks(self) -> bool:
        """Whether the case says what to expect."""
        return self.reference is not None or bool(self.outputs)


def read_case(path: Path) -> Case:
    """Read a case file, or the one in a folder."""
    path = case_file(path)
    root = read_toml(path)
    folder = path.parent
    buffers = {key: _array(root.table("buffers"), key, folder) for key in root.table("buffers").names()}
    surfaces = {key: _surface(root.table("surfaces").table(key), folder) for key in root.table("surfaces").names()}
    launches = _launches(root, buffers, folder)
    expect = root.table("expect")
    reference = expect.get("reference", str, "")
    tolerance = _tolerance(expect.table("tolerance"), Tolerance())
    wanted = expect.table("outputs")
    outputs = {key: _output(wanted.table(key), folder, tolerance) for key in wanted.names()}
    expect.finish()
    case = Case(
        path=path,
        title=root.get("title", str, path.parent.name if path.name == "case.toml" else path.stem),
        program=folder / _program(root, folder),
        strict=root.get("strict", bool, False),
        dialect=root.get("dialect", str, "") or None,
        options={key: _option(root.table("options"), key) for key in root.table("options").names()},
        buffers=buffers,
        surfaces=surfaces,
        launches=launches,
        reference=folder / reference if reference else None,
        tolerance=tolerance,
        outputs=outputs,
        save={key: root.table("save").need(key, str) for key in root.table("save").names()},
    )
    root.finish(LAUNCH_KEYS if "launch" not in root else ())
    _check_names(case)
    return case


def _program(root: Table, folder: Path) -> str:
    """The program's file: what ``ptx`` or ``program`` says, else the only file called ``kernel``."""
    if "program" in root and "ptx" in root:
        raise root.fail("program", "and ptx name the same thing: give one")
    found = sorted(file.name for file in folder.glob("kernel.*") if any(file.suffix in d.suffixes for d in DIALECTS.values()))
    default = "kernel.ptx" if len(found) != 1 else found[0]
    return root.get("program", str, root.get("ptx", str, default))


def _option(table: Table, key: str) -> str | int | bool:
    value = table.any(key)
    if not isinstance(value, str | int | bool):
        raise table.fail(key, "must be a text, a number or a truth value")
    return value


def case_file(path: Path) -> Path:
    """The case file meant by a path: itself, or ``case.toml`` or the only ``.toml`` file of a folder."""
    if not path.is_dir():
        return path
    if (path / "case.toml").exists():
        return path / "case.toml"
    found = sorted(path.glob("*.toml"))
    if len(found) != 1:
        raise InputError(f"{path}: {'several' if found else 'no'} case files (*.toml); name one")
    return found[0]


def find_cases(paths: list[Path]) -> list[Path]:
    """Every case file at or below the paths, in order."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        below = sorted(path.rglob("*.toml")) if path.is_dir() else [path]
        found += [file for file in below if file.name != "pyproject.toml"]
    if not found:
        raise InputError(f"no case files (*.toml) in {', '.join(map(str, paths))}")
    return list(dict.fromkeys(found))


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
    args = {key: _argument(table.table("args"), key, buffers, folder) for key in table.table("args").names()}
    launch = LaunchSpec(
        entry=table.get("entry", str, "") or None,
        grid=table.any("grid"),
        block=table.any("block"),
        shared=table.get("shared", int, 0),
        timeout=table.need("timeout", float) if "timeout" in table else None,
        cooperative=table.get("cooperative", bool, False),
        args=args,
        bind={key: table.table("bind").need(key, str) for key in table.table("bind").names()},
        where=table.where(),
    )
    table.finish(("args", "bind"))
    return launch


def _argument(table: Table, key: str, buffers: dict[str, ArraySpec], folder: Path) -> Argument:
    value = table.any(key)
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return Name(value)
    if isinstance(value, dict) and "bytes" in value:
        return _bytes(table, key)
    if key in buffers:
        raise table.fail(key, f'the case has an array of this name; say {key} = "{key}" to use it')
    buffers[key] = _array(table, key, folder)
    return Name(key)


def _bytes(table: Table, key: str) -> bytes:
    inner = table.table(key)
    text = inner.need("bytes", str)
    inner.finish()
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise inner.fail("bytes", "must be hexadecimal digits, two a byte") from None


def _array(table: Table, key: str, folder: Path) -> ArraySpec:
    inner = table.table(key)
    kinds = [kind for kind in SOURCES if kind in inner]
    if len(kinds) != 1:
        raise inner.fail("", f"must say exactly one of {', '.join(SOURCES)}")
    kind = kinds[0]
    where = inner.where(kind)
    if kind in ("npy", "png"):
        inner.finish()
        return ArraySpec(kind, inner.need(kind, str), folder, where)
    if kind == "values":
        inner.need("values", list), inner.need("dtype", str)
        inner.finish()
        return ArraySpec(kind, inner.data, folder, where)
    inner.finish()
    spec = inner.table(kind)
    spec.finish(GENERATORS[kind][1])
    return ArraySpec(kind, spec.data, folder, where)


def _surface(table: Table, folder: Path) -> SurfaceSpec:
    data = _array(table, "data", folder) if "data" in table else None
    extents = {key: table.need(key, int) for key in EXTENTS if key in table}
    if data is not None and extents:
        raise table.fail(next(iter(extents)), "the extents are those of data: give one or the other")
    if data is None and "width" not in extents:
        raise table.fail("width", "is missing (or give data)")
    spec = SurfaceSpec(
        geometry=table.get("geometry", str, "2d"),
        format=table.need("format", str),
        layout=table.get("layout", str, "pitch"),
        extents=extents,
        data=data,
        options={key: table.need(key, kind) for key, kind in SURFACE_OPTIONS.items() if key in table},
        where=table.where(),
    )
    table.finish()
    return spec


def _tolerance(table: Table, default: Tolerance) -> Tolerance:
    tolerance = Tolerance(
        abs=table.get("abs", float, default.abs),
        rel=table.get("rel", float, default.rel),
        ulp=table.get("ulp", int, default.ulp),
    )
    table.finish()
    for key in ("abs", "rel", "ulp"):
        if not getattr(tolerance, key) >= 0:
            raise table.fail(key, "must not be negative")
    return tolerance


def _output(table: Table, folder: Path, default: Tolerance) -> Output:
    limits = Table(table.file, table.place, {key: table.data[key] for key in ("abs", "rel", "ulp") if key in table})
    tolerance = _tolerance(limits, default if not limits.data else Tolerance())
    source: ArraySpec | str | None = None
    if "expression" in table:
        source = table.need("expression", str)
        table.finish()
    else:
        rest: Mapping[str, Any] = {key: table.data[key] for key in table.data if key not in limits.data}
        if rest:
            source = _array(Table(table.file, "", {table.place: rest}), table.place, folder)
    return Output(source, tolerance)


def _check_names(case: Case) -> None:
    names = {*case.buffers, *case.surfaces}
    both = set(case.buffers) & set(case.surfaces)
    if both:
        raise InputError(f"{case.path}: surfaces.{min(both)}: an array has this name already")
    for launch in case.launches:
        for key, value in launch.args.items():
            if isinstance(value, Name) and value.name not in names:
                raise InputError(f"{launch.where}: args.{key}: no array or surface is named '{value.name}'")
        for key, name in launch.bind.items():
            if name not in case.surfaces:
                raise InputError(f"{launch.where}: bind.{key}: no surface is named '{name}'")
    scalars = {key for launch in case.launches for key in launch.args}
    for table, keys in (("expect.outputs", case.outputs), ("save", case.save)):
        for key in keys:
            if key not in names:
                kind = "is a scalar" if key in scalars else "is no array or surface of the case"
                raise InputError(f"{case.path}: {table}.{key}: {kind}")
