"""A pytest plugin: what the tests launch runs on a GPU as well, which must leave the same bits in memory.

    PYTHONPATH=. pytest -p tests.support.hardware tests/isa

Tests then judge what the GPU has left, so that one that fails says where an oracle differs from hardware. The emulator, with the
bits of the GPU's architecture, is compared bit by bit: each launch is a line of ``hardware-*.jsonl`` in the folder
``PTXEMU_HARDWARE`` (``out/hardware``), and the bytes of those that differ lie beside it (pickled: test, kernel, text, parts).
Kernels for other architectures are tried for the GPU's own.

``PTXEMU_CUDA`` is the driver, else the system's.  A process that has met a fault on the GPU cannot go on and ends with FAULTED;
the last line of the file ``PTXEMU_BEGUN``, if given, is the test that it was in.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import pickle
import re
from collections.abc import Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest
from msgspec.structs import replace

from ptxemu import api
from ptxemu.case.cuda_driver import Address, CudaDriver, Pointer
from ptxemu.case.cuda_images import CudaImages
from ptxemu.device.handle import HandleObject
from ptxemu.device.surface_object import SurfaceObject
from ptxemu.device.tensor_map import TensorMap
from ptxemu.text.errors import InputError, LaunchTimeout
from tests.support.mirror import Bytes, Mirror

FOLDER = Path(os.environ.get("PTXEMU_HARDWARE", "out/hardware"))
FAULTED = 3
TIMEOUT = 10.0  # seconds of a launch on the GPU
MOST_BYTES = 1 << 18  # of a difference that is kept
MOST_MODULES = 64  # that stay loaded
TARGET = re.compile(r"^(\s*\.target\s+)sm_\w+", re.M)
VERSION = re.compile(r"^(\s*\.version\s+)9\.[1-9]", re.M)
ENTRY = re.compile(r"(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)")
IMAGE = re.compile(r"\b(?:tex|tld4|txq|suld|sust|sured|suq)\.")
REFUSED = ("INVALID_VALUE", "OUT_OF_RESOURCES", "NOT_SUPPORTED", "COOPERATIVE", "NOT_FOUND")  # errors that leave the GPU usable
Launch = Any  # ptxemu.api._Launch

test = ""
alive: WeakValueDictionary[int, HandleObject] = WeakValueDictionary()
bound: dict[int, dict[str, HandleObject]] = {}


class Hardware:
    """The GPU of this process: its modules, and the log of what was compared."""

    def __init__(self) -> None:
        self.driver = CudaDriver(os.environ.get("PTXEMU_CUDA"))
        self.like = "sm_" + self.driver.about()["compute_capability"].replace(".", "")
        self._loaded: dict[str, Pointer] = {}
        self._fitting: dict[str, str | None] = {}
        FOLDER.mkdir(parents=True, exist_ok=True)
        stem = f"hardware-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}-{os.getpid()}"
        self._log = (FOLDER / f"{stem}.jsonl").open("a")
        self._bytes = (FOLDER / f"{stem}.pickle").open("ab")

    def note(self, launch: Launch, verdict: str, why: str = "") -> None:
        kernel = launch.ready.launcher.kernel
        text = hashlib.sha256(kernel.module.program.source.text.encode()).hexdigest()[:16]
        facts = {"test": test, "kernel": kernel.name, "verdict": verdict, "text": text, "why": why}
        self._log.write(json.dumps({name: value for name, value in facts.items() if value}) + "\n")
        self._log.flush()

    def keep(self, launch: Launch, emulated: list[Bytes], measured: list[Bytes]) -> None:
        """The bytes of the parts that differ."""
        pairs = enumerate(zip(emulated, measured, strict=True))
        parts = [(index, one, two) for index, (one, two) in pairs if one.tobytes() != two.tobytes()]
        if sum(one.nbytes for _, one, _ in parts) <= MOST_BYTES:
            kernel = launch.ready.launcher.kernel
            pickle.dump((test, kernel.name, kernel.module.program.source.text, parts), self._bytes)
            self._bytes.flush()

    def load(self, text: str, kernel: str) -> Pointer:
        """The module of a text that the driver takes: the text itself, for the GPU's own architecture, or of one kernel alone."""
        own = VERSION.sub(r"\g<1>9.0", TARGET.sub(rf"\g<1>{self.like}a", text))
        if text not in self._fitting:
            self._fitting[text] = next((form for form in (text, own) if self._takes(form)), None)
        form = self._fitting[text] or without_others(own, kernel)
        if form not in self._loaded:
            self._make_room()
            self._loaded[form] = self._module(form)
        return self._loaded[form]

    def clean(self, mark: int) -> None:
        """Give back what was made since."""
        while len(self.driver._at_exit) > mark:
            function, handle = self.driver._at_exit.pop()
            getattr(self.driver._library, function)(handle)

    def _takes(self, text: str) -> bool:
        try:
            self._make_room()
            self._loaded[text] = self._module(text)
        except InputError:
            return False
        return True

    def _make_room(self) -> None:
        if len(self._loaded) >= MOST_MODULES:
            self.driver.call("cuModuleUnload", self._loaded.pop(next(iter(self._loaded))))

    def _module(self, text: str) -> Pointer:
        mark = len(self.driver._at_exit)
        try:
            return self.driver.load([(Path("test.ptx"), text.encode())])
        finally:
            del self.driver._at_exit[mark:]


@cache
def hardware() -> Hardware:
    return Hardware()


def without_others(text: str, kernel: str) -> str:
    """A text without its other kernels."""
    parts, at = [], 0
    for match in ENTRY.finditer(text):
        if match.start() < at or match[1] == kernel:
            continue
        end = depth = 0
        for end in range(text.index("{", match.end()), len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                break
        parts.append(text[at : match.start()])
        at = end + 1
    return "".join([*parts, text[at:]])


def handles_in(value: object) -> Iterator[HandleObject]:
    """The surfaces and textures among arguments."""
    if isinstance(value, HandleObject):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from handles_in(item)


def unfit(launch: Launch) -> str:
    """Why a launch is nothing for a GPU."""
    ready, module = launch.ready, launch.ready.launcher.kernel.module
    reasons = {
        "another dialect": module.program.settings.dialect != "ptx",
        "host memory": module.device.host_memory,
        "interpreted": module.device.engine != "jit",
        "a part": ready.launcher._part is not None,
        "cluster by argument": any(ready.cluster),
        "tensor map": any(isinstance(value, TensorMap) for value in launch.args),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def mirrored(gpu: Hardware, launch: Launch, params: bytes, loaded: Pointer) -> Mirror:
    """What the launch works on, on the GPU. Raises InputError for what a GPU cannot be given."""
    module = launch.ready.launcher.kernel.module
    given = list(handles_in(launch.args))
    named = {f"handle {item.handle}": item for item in given or alive.values()}
    references = {f"variable {name}": (name, item) for name, item in bound.get(id(module.resident()), {}).items()}
    images = CudaImages(gpu.driver, named | {key: item for key, (_, item) in references.items()})
    handles = {item.handle: name for name, item in named.items()}
    in_memory = bool(not given and not references and IMAGE.search(module.program.source.text))
    mirror = Mirror(gpu.driver, module.device.arena, images, handles, in_memory)
    for name, info in module.info.variables.items():
        there, size = Address(), ctypes.c_size_t()
        get = gpu.driver._library.cuModuleGetGlobal_v2
        if not get(ctypes.byref(there), ctypes.byref(size), loaded, name.encode()):  # the assembler may have left it out
            mirror.add(module.resident().bases[info.space] + info.offset, min(info.size, size.value), there.value)
    mirror.follow(np.frombuffer(params, np.uint8))
    for key, (name, _) in references.items():
        images.bind(loaded, name, key)
    for item in given:
        images.handle(f"handle {item.handle}")
    return mirror


def run_all(launch: Launch, params: bytes, stop: Any) -> Any:
    """Launch on both, and leave what the GPU has made."""
    gpu, kernel = hardware(), launch.ready.launcher.kernel
    reason, mark = unfit(launch), len(gpu.driver._at_exit)
    try:
        if reason:
            raise InputError(reason)
        loaded = gpu.load(kernel.module.program.source.text, kernel.name)
        mirror = mirrored(gpu, launch, params, loaded)
    except InputError as error:
        gpu.note(launch, "unfit", str(error)[:400])
        gpu.clean(mark)
        return plain_run(launch, params, stop)
    done = plain_run(launch, params, stop)
    compare(gpu, launch, loaded, mirror, params)
    gpu.clean(mark)
    return done


def compare(gpu: Hardware, launch: Launch, loaded: Pointer, mirror: Mirror, params: bytes) -> None:
    """Launch on the GPU what the emulator has run."""
    kernel, images = launch.ready.launcher.kernel, mirror.images
    made = {
        name: item
        for name, item in images._items.items()
        if isinstance(item, SurfaceObject) and id(item.surface) in images._arrays
    }
    emulated = [*mirror.emulated(), *(item.copy_to_host() for item in made.values())]
    try:
        mirror.upload()
        raw = mirror.translated(np.frombuffer(params, np.uint8))
        given = [raw[one.offset : one.offset + one.size].tobytes() for one in kernel.info.parameters]
        shape, ready = launch.ready.launcher.shape, launch.ready
        gpu.driver.launch(loaded, kernel.info.name, shape, ready.shared, ready.cooperative, given, TIMEOUT)
        memory, texels = mirror.results(), images.arrays()
    except (InputError, LaunchTimeout) as error:
        gpu.note(launch, "fault", str(error)[:400])
        if not any(word in str(error) for word in REFUSED):
            os._exit(FAULTED)
        return
    measured = [*memory, *(texels[name] for name in made)]
    same = all(one.tobytes() == two.tobytes() for one, two in zip(emulated, measured, strict=True))
    gpu.note(launch, "same" if same else "different")
    if not same:
        gpu.keep(launch, emulated, measured)
    mirror.leave(memory)
    for name, item in made.items():
        item.copy_from_host(texels[name])


plain_run, plain_module, plain_bind, plain_handle = (
    api._Launch._run_all,
    api.Module.__init__,
    api.Module.bind,
    HandleObject.__init__,
)


@wraps(plain_module)
def alike(self: api.Module, program: Any, *others: Any) -> None:
    """A module whose numerics are the GPU's, unless it asks for others."""
    if not program.settings.like and program.settings.dialect == "ptx":
        program.settings = replace(program.settings, like=hardware().like)
    plain_module(self, program, *others)


@wraps(plain_bind)
def noted(self: api.Module, name: str, item: Any, index: int = 0) -> None:
    plain_bind(self, name, item, index)
    bound.setdefault(id(self.resident()), {})[name] = item


@wraps(plain_handle)
def known(self: HandleObject, *arguments: Any) -> None:
    plain_handle(self, *arguments)
    alive[self.handle] = self


HandleObject.__init__ = known  # type: ignore[method-assign]
api._Launch._run_all = run_all  # type: ignore[method-assign]
api.Module.__init__ = alike  # type: ignore[method-assign]
api.Module.bind = noted  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def which(request: pytest.FixtureRequest) -> None:
    global test
    test = request.node.nodeid
    if "PTXEMU_BEGUN" in os.environ:
        with Path(os.environ["PTXEMU_BEGUN"]).open("a") as file:
            file.write(test + "\n")
