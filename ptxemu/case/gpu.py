"""Running a case on a GPU, through NVIDIA's driver: for results to compare with."""

from __future__ import annotations

from ptxemu.api import Kernel, load
from ptxemu.case.arguments import Argument, Name, StructSpec
from ptxemu.case.arrays import Array
from ptxemu.case.bindings import in_order
from ptxemu.case.cuda_driver import CudaDriver
from ptxemu.case.cuda_images import CudaImages
from ptxemu.case.images import RegisterSpec
from ptxemu.case.resources import Resources
from ptxemu.case.runner import kernel_of
from ptxemu.case.schema import Case, LaunchSpec
from ptxemu.device.device import default_device
from ptxemu.device.launch_limits import shape_of
from ptxemu.device.module_info import Parameter
from ptxemu.device.scalars import pack_scalar, pack_struct
from ptxemu.device.structs import POINTER, ByValue, members_of
from ptxemu.text.errors import InputError
from ptxemu.text.files import MAX_PROGRAM, read_file, regular


class _Memory:
    """What a case describes, and where its copies are on the GPU: each is made when it is first asked for."""

    def __init__(self, driver: CudaDriver, resources: Resources) -> None:
        self.driver, self.hosts, self.images = driver, resources.hosts, CudaImages(driver, dict(resources.handles))
        self._handles = resources.handles
        self._addresses: dict[str, int] = {}

    def pointer(self, name: str) -> bytes:
        """The address of an array, or the handle of a surface or texture."""
        return self._number(name).to_bytes(POINTER, "little")

    def arrays(self) -> dict[str, Array]:
        """The contents of all arrays and surfaces now."""
        found = {name: self.driver.to_host(address, self.hosts[name]) for name, address in self._addresses.items()}
        return {**self.hosts, **found, **self.images.arrays()}

    def _number(self, name: str) -> int:
        if name in self._handles:
            return self.images.handle(name)
        if name not in self._addresses:
            self._addresses[name] = self.driver.to_device(self.hosts[name])
        return self._addresses[name]


def run_on_gpu(case: Case, library: str | None = None, timeout: float | None = None) -> tuple[dict[str, Array], dict[str, str]]:
    """The final contents of a case's arrays after its launches on a GPU, and what the driver says of itself.

    ``library`` is the driver, by default the system's ``libcuda.so.1``; ``timeout``, in seconds, is for launches that state none.
    Raises InputError for what a GPU cannot be given (options, programs of other instruction sets, surfaces and textures of which
    CUDA has no form), and where the driver fails; and LaunchTimeout.
    """
    _refuse(case)
    module = load([regular(program, "") for program in case.programs], strict=case.strict)
    resources = Resources(case, default_device())
    with CudaDriver(library) as driver:
        loaded = driver.load([(program, read_file(program, MAX_PROGRAM)) for program in case.programs])
        memory = _Memory(driver, resources)
        for spec in case.launches:
            kernel = kernel_of(module, spec)
            shape = shape_of(spec.grid, spec.block)
            for variable, name in spec.bind.items():
                memory.images.bind(loaded, variable, name)
            params = _params(kernel, spec, memory)
            limit = timeout if spec.timeout is None else spec.timeout
            driver.launch(loaded, kernel.info.name, shape, spec.shared, spec.cooperative, params, limit)
        return memory.arrays(), driver.about()


def _refuse(case: Case) -> None:
    """Refuse what a GPU cannot be given, or would do in another way than the case says."""
    for launch in case.launches:
        if launch.cluster is not None:
            raise InputError(f"{launch.where}: cluster: a launch on a GPU has those that its kernel requires")
    for spec in case.surfaces.values():
        if isinstance(spec, RegisterSpec):
            raise InputError(f"{spec.where}: is described by registers, which CUDA does not have")
        if "enabled" in spec.options:
            raise InputError(f"{spec.where}: enabled: is for the emulator: a GPU has no such choice")
        if spec.format.endswith("NORM") and any(b"sust.p" in read_file(program, MAX_PROGRAM) for program in case.programs):
            raise InputError(f"{spec.where}: is {spec.format}: arrays of CUDA hold integers, to which sust.p does not scale")
    if case.options:
        raise InputError(f"{case.path}: options.{next(iter(case.options))}: is for the emulator: a GPU has no such choice")
    if case.dialect not in (None, "ptx") or any(program.suffix != ".ptx" for program in case.programs):
        raise InputError(f"{case.path}: a GPU's driver takes PTX only")


def _params(kernel: Kernel, spec: LaunchSpec, memory: _Memory) -> list[bytes]:
    """The bytes of each parameter."""
    arguments = in_order(kernel.info, spec.args, f"{spec.where}: args")
    return [
        _packed(parameter, argument, memory, f"{spec.where}: args: {parameter.name}")
        for parameter, argument in zip(kernel.info.parameters, arguments, strict=True)
    ]


def _packed(parameter: Parameter, argument: Argument, memory: _Memory, where: str) -> bytes:
    if parameter.opaque:
        raise InputError(f"{where}: is .{parameter.type}, which CUDA's driver does not pass")
    if isinstance(argument, StructSpec):
        return _struct(parameter, argument, memory, where)
    value: object = argument
    if isinstance(argument, Name):
        if parameter.elements is None:
            return memory.pointer(argument.name)
        value = memory.hosts[argument.name]
    return pack_scalar(parameter, value, where) if parameter.elements is None else pack_struct(parameter, value, where)


def _struct(parameter: Parameter, argument: StructSpec, memory: _Memory, where: str) -> bytes:
    data = bytearray(parameter.size)
    members = argument.resolved(lambda name: ByValue(memory.pointer(name), POINTER))
    for member in members_of(parameter, members, where):
        assert isinstance(member.value, bytes), "pointers are known"
        data[member.offset : member.offset + len(member.value)] = member.value
    return bytes(data)
