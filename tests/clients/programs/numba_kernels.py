"""Kernels of Numba that several programs run."""

from numba import cuda, float32

TILE = 8


@cuda.jit
def product(a, b, c):
    left = cuda.shared.array((TILE, TILE), float32)  # lines of their own: the simulator tells arrays apart by their lines
    right = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    value = float32(0)
    for tile in range(a.shape[1] // TILE):
        left[row, column] = a[y, tile * TILE + column]
        right[row, column] = b[tile * TILE + row, x]
        cuda.syncthreads()
        for k in range(TILE):
            value += left[row, k] * right[k, column]
        cuda.syncthreads()
    c[y, x] = value
