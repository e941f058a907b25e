"""A program of PyCUDA: a kernel that nvcc compiles, arrays, reductions, streams, and surface and texture references of PTX."""

import sys
from pathlib import Path

import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda import gpuarray
from pycuda.compiler import SourceModule

SOURCE = """
__global__ void scaled_sum(float *out, const float *x, const float *y, float a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a * x[i] + y[i];
}
"""


def kernels() -> None:
    x, y = np.random.default_rng(1).random((2, 4096), np.float32)
    out = np.empty_like(x)
    kernel = SourceModule(SOURCE).get_function("scaled_sum")
    kernel(cuda.Out(out), cuda.In(x), cuda.In(y), np.float32(3), block=(256, 1, 1), grid=(16, 1))
    assert np.allclose(out, 3 * x + y)


def arrays() -> None:
    x = np.arange(1000, dtype=np.float32)
    on_device = gpuarray.to_gpu(x)
    assert np.allclose((2 * on_device + 1).get(), 2 * x + 1)
    assert gpuarray.sum(on_device).get() == x.sum()
    assert np.isclose(gpuarray.dot(on_device, on_device).get(), np.dot(x, x))


def streams() -> None:
    x = cuda.pagelocked_empty(1 << 16, np.int32)
    x[:] = np.arange(x.size)
    back = cuda.pagelocked_empty_like(x)
    stream, done = cuda.Stream(), cuda.Event()
    memory = cuda.mem_alloc(x.nbytes)
    cuda.memcpy_htod_async(memory, x, stream)
    cuda.memcpy_dtoh_async(back, memory, stream)
    done.record(stream)
    done.synchronize()
    assert np.array_equal(x, back)


def array_of(shape: tuple[int, int], kind: cuda.array_format) -> cuda.Array:
    """An array of texels that surfaces can be bound to."""
    wanted = cuda.ArrayDescriptor3D()
    wanted.height, wanted.width = shape
    wanted.depth, wanted.format, wanted.num_channels = 0, kind, 1
    wanted.flags = cuda.array3d_flags.SURFACE_LDST
    return cuda.Array(wanted)


def references(ptx: Path) -> None:
    module = cuda.module_from_buffer(ptx.read_bytes())
    canvas = array_of((4, 8), cuda.array_format.UNSIGNED_INT32)
    surface = module.get_surfref("canvas")
    surface.set_array(canvas)
    module.get_function("write_canvas")(block=(8, 4, 1), grid=(1, 1))
    found = np.zeros((4, 8), np.uint32)
    copy = cuda.Memcpy2D()
    copy.set_src_array(canvas)
    copy.set_dst_host(found)
    copy.width_in_bytes, copy.height = 32, 4
    copy(aligned=True)
    assert np.array_equal(found, 10 * np.arange(4)[:, None] + np.arange(8))
    image = module.get_texref("image")
    values = np.random.default_rng(2).random((8, 8), np.float32)
    cuda.matrix_to_texref(values, image, order="C")
    out = np.zeros((8, 8), np.float32)
    module.get_function("read_image")(cuda.Out(out), block=(8, 8, 1), grid=(1, 1), texrefs=[image])
    assert np.array_equal(out, values)


if __name__ == "__main__":
    assert pycuda.autoprimaryctx.device.name() == "ptxemu CPU"
    kernels()
    arrays()
    streams()
    references(Path(sys.argv[1]))
    print("right")
