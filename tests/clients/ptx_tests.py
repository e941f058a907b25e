"""vosen/ptx_tests on libcuda.so.1: its PTX, with inputs and verdicts of our own in NumPy, by the rules of its host program.

``python -m tests.clients.ptx_tests DIRECTORY [NAME ...]``: a checkout of https://github.com/vosen/ptx_tests. A name may be the
beginning of some. ``--count N``: inputs of each case, 2^20 unless told; its own program, which needs Rust, takes 2^32.
Sums and products are rounded from exact values, where its host program rounds twice.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ptxemu.process.cuda import environment, library_path
from tests.clients import ptx_cases, ptx_comparisons, ptx_conversions
from tests.clients.ptx_cases import Case

HEAD = "\n.version 7.8\n.target sm_90\n.address_size 64\n"
ARCH = "90"
GROUP = 128
CASES = sorted([*ptx_cases.CASES, *ptx_comparisons.CASES, *ptx_conversions.CASES], key=lambda case: case.name)
SEED = 0x761194F3


class Driver:
    """The few functions of the driver API that the host program uses."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(library_path() / "libcuda.so.1"))
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} returns {status}")

    def memory(self, size: int) -> ctypes.c_uint64:
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def refuses(self, text: str) -> bool:
        """Whether a module cannot be loaded. What the library has to say of it is left out."""
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        try:
            return self.library.cuModuleLoadData(ctypes.byref(ctypes.c_void_p()), text.encode()) != 0
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            os.close(nowhere)

    def run(self, text: str, inputs: Sequence[np.ndarray], output: np.dtype) -> np.ndarray:
        """What a module's kernel ``run`` makes of some arrays of one length, a multiple of GROUP."""
        module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), text.encode())
        self.call("cuModuleGetFunction", ctypes.byref(kernel), module, b"run")
        found = np.empty(len(inputs[0]), output)
        buffers = [self.memory(array.nbytes) for array in (*inputs, found)]
        for address, array in zip(buffers, inputs, strict=False):
            self.call("cuMemcpyHtoD_v2", address, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        arguments = (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(address) for address in buffers))
        self.call("cuLaunchKernel", kernel, len(found) // GROUP, 1, 1, GROUP, 1, 1, 0, None, arguments, None)
        self.call("cuStreamSynchronize", None)
        self.call("cuMemcpyDtoH_v2", found.ctypes.data_as(ctypes.c_void_p), buffers[-1], ctypes.c_size_t(found.nbytes))
        for address in buffers:
            self.call("cuMemFree_v2", address)
        self.call("cuModuleUnload", module)
        return found


def source(folder: Path, case: Case) -> str:
    """The module of a case: its body, behind parameters that are loaded."""
    body = (folder / "src" / "testcase" / case.file).read_text()
    for placeholder, text in case.placeholders.items():
        body = body.replace(f"<{placeholder}>", text)
    names = [*case.arguments, case.result]
    parameters = ", ".join(f".param .u64 {name}" for name in names)
    loads = "\n".join(f".reg .u64 {name}_addr;\nld.param.u64 {name}_addr, [{name}];" for name in names)
    return f"{HEAD}\n.entry run({parameters})\n{{\n{loads}\n{body}\nret;\n}}"


def verdict(driver: Driver, folder: Path, case: Case, count: int) -> str:
    inputs = case.inputs(np.random.default_rng(SEED), count)
    found = driver.run(source(folder, case), inputs, np.dtype(case.output))
    with np.errstate(all="ignore"):
        expected = case.expected(*inputs).astype(case.output)
        right = case.right(inputs, expected, found)
    if right.all():
        return "OK"
    first = int((~right).argmax())
    given = ", ".join(str(array[first]) for array in inputs)
    return f"FAIL: {(~right).sum()} of {right.size}, the first ({given}) is {found[first]} for {expected[first]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the checkout")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=1 << 20)
    given = parser.parse_intermixed_args()
    count = -(-given.count // GROUP) * GROUP
    os.environ.update(environment(os.environ) | {"PTXEMU_ARCH": ARCH})
    driver, failed = Driver(), 0
    chosen = [case for case in CASES if not given.names or case.name.startswith(tuple(given.names))]
    loaded = [case.name for case in chosen if not case.valid and not driver.refuses(source(given.folder, case))]
    failed += len(loaded)
    print(f"no instructions: {'loaded: ' + ', '.join(loaded) if loaded else 'refused'}", flush=True)
    for case in chosen:
        if not case.valid:
            continue
        said = verdict(driver, given.folder, case, count)
        failed += said != "OK"
        print(f"{case.name}: {said}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
