"""cuda.core: CUDA C++ through NVRTC to PTX, memory of a stream's pool, a launch."""

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch

CODE = r"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}"""
N = 1000


def main() -> None:
    device = Device()
    device.set_current()
    stream = device.create_stream()
    text = Program(CODE, "c++", ProgramOptions(std="c++17", arch="compute_80")).compile("ptx").code
    kernel = ObjectCode.from_ptx(bytes(text)).get_kernel("saxpy")
    x, y = np.arange(N, dtype="f4"), np.ones(N, "f4")
    buffers = [device.allocate(array.nbytes, stream=stream) for array in (x, y)]
    for buffer, array in zip(buffers, (x, y), strict=True):
        assert driver.cuMemcpyHtoD(int(buffer.handle), array.ctypes.data, array.nbytes)[0] == 0
    launch(stream, LaunchConfig(grid=8, block=128), kernel, np.float32(2), *buffers, np.uint64(N))
    stream.sync()
    out = np.empty(N, "f4")
    assert driver.cuMemcpyDtoH(out.ctypes.data, int(buffers[1].handle), out.nbytes)[0] == 0
    assert np.array_equal(out, 2 * x + y)
    print("right")


main()
