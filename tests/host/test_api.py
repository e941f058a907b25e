"""Loading and launching through the Python interface."""

from __future__ import annotations

import array as array_module
import ctypes
import threading
from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu import Fault, InputError, LaunchTimeout, PtxError, UnsupportedError
from tests.support import api_kernels as ptx

pytestmark = pytest.mark.filterwarnings("error::ptxemu.DtypeWarning")


@pytest.fixture(scope="module")
def saxpy() -> ptxemu.Kernel:
    return ptxemu.loads(ptx.SAXPY)["saxpy"]


def data(n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)


def test_arrays_change_in_place(saxpy):
    x, y = data()
    result = saxpy[4, 32](100, 2.0, x, y)
    np.testing.assert_array_equal(y, 2 * np.arange(100, dtype=np.float32) + 0.5)
    np.testing.assert_array_equal(x, np.arange(100, dtype=np.float32))
    assert result.ctas == 4


@pytest.mark.parametrize("shape", [(4, 32), ((4,), (32,)), ([4, 1, 1], (32, 1)), (np.int64(4), np.uint8(32))])
def test_grid_and_block_forms(saxpy, shape):
    x, y = data()
    saxpy[shape](100, 1, x, y)
    np.testing.assert_array_equal(y, x + np.float32(0.5))


def test_one_array_twice_is_one_buffer(saxpy):
    x = np.arange(64, dtype=np.float32)
    saxpy[2, 32](64, 1.0, x, x)
    np.testing.assert_array_equal(x, 2 * np.arange(64, dtype=np.float32))


def test_overlapping_views_share_memory(saxpy):
    base = np.ones(65, np.float32)
    saxpy[1, 1](1, 1.0, base[:64], base[1:])
    np.testing.assert_array_equal(base, np.r_[1, 2, np.ones(63)])


def test_read_only_arrays_are_inputs(saxpy):
    """Writing to one is an error, and does not reach it."""
    x, y = data()
    x.flags.writeable = False
    saxpy[4, 32](100, 2.0, x, y)
    expected = 2 * np.arange(100, dtype=np.float32) + 0.5
    np.testing.assert_array_equal(y, expected)
    y.flags.writeable = False
    with pytest.raises(InputError, match="kernel saxpy has written to y, which is a read-only array"):
        saxpy[4, 32](100, 2.0, x, y)
    np.testing.assert_array_equal(y, expected)
    saxpy[4, 32](0, 2.0, x, y)  # does not write


def test_arrays_that_are_not_contiguous_are_copied(saxpy):
    rows = np.zeros((100, 3), np.float32)
    rows[:, 0] = np.arange(100)
    saxpy[4, 32](100, 2.0, rows[:, 0].copy(), rows[:, 1])
    np.testing.assert_array_equal(rows, np.stack([np.arange(100), 2 * np.arange(100), np.zeros(100)], 1))
    backward = np.arange(100, dtype=np.float32)[::-1]
    saxpy[4, 32](100, 1.0, np.zeros(100, np.float32), backward)
    y = np.zeros(100, np.float32)
    saxpy[4, 32](100, 1.0, backward, y)
    np.testing.assert_array_equal(y, np.arange(99, -1, -1))
    with pytest.raises(InputError, match="not contiguous, and shares memory with another argument"):
        saxpy[4, 32](10, 1.0, rows[:, 0], rows[:, 1])
    with pytest.raises(InputError, match="not contiguous, and shares memory with another argument"):
        saxpy[4, 32](10, 1.0, backward, backward)
    fixed = rows.copy()
    fixed.flags.writeable = False
    saxpy[4, 32](100, 1.0, fixed[:, 1], y)
    np.testing.assert_array_equal(y, np.arange(99, -1, -1) + 2 * np.arange(100))


def test_a_fault_leaves_arrays_that_are_not_contiguous(saxpy):
    x, pairs = np.zeros(100, np.float32), np.ones((50, 2), np.float32)
    with pytest.raises(Fault):
        saxpy[1000, 32](30000, 1.0, x, pairs[:, 0])
    np.testing.assert_array_equal(pairs, np.ones((50, 2)))


class Wrapped:
    """An array that only NumPy's protocol gives away."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self.array


class Tensor:
    """An array that only DLPack gives away."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> object:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize(
    "make", [Wrapped, Tensor, memoryview, lambda a: array_module.array("f", a), lambda a: (ctypes.c_float * len(a))(*a),
             lambda a: bytearray(a.tobytes())],
    ids=["protocol", "dlpack", "memoryview", "array.array", "ctypes", "bytearray"],
)  # fmt: skip
def test_what_has_an_arrays_memory_is_one(saxpy, make):
    y = np.full(32, 0.5, np.float32)
    given = make(y)
    saxpy[1, 32](32, 1.0, bytes(np.ones(32, np.float32)), given)
    seen = np.frombuffer(given, np.float32) if not isinstance(given, Wrapped | Tensor) else given.array
    np.testing.assert_array_equal(seen, np.full(32, 1.5))


@pytest.mark.parametrize("value", [[1.0, 2.0], "text", {}, object(), (1,)])
def test_what_is_no_array(saxpy, value):
    y = np.zeros(32, np.float32)
    message = f"argument 2 \\(x\\): expects an array, a buffer, an address or None, not {type(value).__name__}"
    with pytest.raises(InputError, match=message):
        saxpy[1, 32](32, 1.0, value, y)


def test_arrays_that_cannot_be_had_say_why(saxpy):
    class Elsewhere:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            raise TypeError("it lies on a GPU\nfar away")

    with pytest.raises(InputError, match=r"argument 2 \(x\): Elsewhere cannot be used as an array: it lies on a GPU$"):
        saxpy[1, 32](32, 1.0, Elsewhere(), np.zeros(32, np.float32))


def test_arguments_by_name(saxpy):
    x, y = data()
    saxpy[4, 32](100, y=y, a=2.0, x=x)
    np.testing.assert_array_equal(y, 2 * x + np.float32(0.5))
    for given, message in (
        ({"y": y, "a": 2.0}, "kernel saxpy: no value for parameter x"),
        ({"y": y, "a": 2.0, "x": x, "n": 1}, "parameter 'n' is given twice"),
        ({"y": y, "a": 2.0, "x": x, "z": 1}, "kernel saxpy has no parameter 'z'"),
    ):
        with pytest.raises(InputError, match=message):
            saxpy[4, 32](100, **given)


def test_load_is_not_loads():
    with pytest.raises(InputError, match="load takes the path of a file; loads takes the text"):
        ptxemu.load(ptx.SAXPY)


def test_fortran_order_keeps_the_memory_order(saxpy):
    x = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    y = np.zeros(6, np.float32)
    saxpy[1, 32](6, 1.0, x, y)
    np.testing.assert_array_equal(y, x.ravel(order="K"))


def test_empty_array_and_none_are_null(saxpy):
    saxpy[1, 32](0, 1.0, np.empty(0, np.float32), None)


def test_buffers_need_no_copies(saxpy):
    device = ptxemu.default_device()
    x, y = (device.to_device(array) for array in data())
    saxpy[4, 32](100, 2.0, x, y)
    np.testing.assert_array_equal(y.copy_to_host(), 2 * x.array + np.float32(0.5))


def test_scalars_of_every_kind():
    kernel = ptxemu.loads(ptx.SCALARS)["scalars"]
    out = np.zeros(8, np.uint64)
    kernel[1, 1](out, -5, 65535, -(2**31), -1, np.float32(1.5), 0.1, 0.1, -(2**63))
    expected = [
        2**64 - 5, 65535, 2**64 - 2**31, 2**32 - 1,
        *(int(np.float32(value).view(np.uint32)) for value in (1.5, 0.1)), int(np.float64(0.1).view(np.uint64)), 2**63,
    ]  # fmt: skip
    assert out.tolist() == expected


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (1, 128, "128 is out of range (-128 to 127)"),
        (2, 65536, "65536 is out of range"),
        (3, 2**31, "2147483648 is out of range"),
        (4, 2**32, "4294967296 is out of range"),
        (4, 1.0, "expects an integer, not float"),
        (5, 1.5, "pass np.float32(x) for its bits"),
        (5, np.float64(1.5), "expects 32 bits, not float64"),
        (6, 1e39, "1e+39 is out of range of f32"),
        (6, "1", "expects a number, not str"),
        (6, True, "expects a number, not bool"),
        (7, None, "expects a number, not NoneType"),
        (8, -(2**63) - 1, "is out of range"),
        (3, np.zeros(3, np.int32), "expects a scalar, not an array of int32"),
        (0, np.array(["a"]), "cannot be held in device memory"),
        (0, 2.5, "expects an array, a buffer or an address (unsigned long*, written), not float"),
        (0, np.zeros(8, ">u8"), "byte order"),
        (0, [1, 2], "expects an array, a buffer, an address or None, not list"),
    ],
)
def test_wrong_scalars(position, value, message):
    kernel = ptxemu.loads(ptx.SCALARS)["scalars"]
    arguments = [np.zeros(8, np.uint64), 0, 0, 0, 0, 0, 0.0, 0.0, 0]
    arguments[position] = value
    with pytest.raises(InputError) as caught:
        kernel[1, 1](*arguments)
    assert message in str(caught.value)
    assert f"argument {position} ({kernel.info.parameters[position].name})" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_infinities_and_nan_are_floats(saxpy):
    x, y = data(3)
    saxpy[1, 32](3, float("inf"), x + 1, y)
    assert np.isinf(y).all()
    saxpy[1, 32](3, float("nan"), x, y)
    assert np.isnan(y).all()


def test_struct_by_value():
    kernel = ptxemu.loads(ptx.STRUCT)["poke"]
    buffer = ptxemu.default_device().empty(4)
    record = np.array((2, 7.5, buffer.address), dtype=[("index", "u4"), ("value", "f4"), ("where", "u8")])
    kernel[1, 1](record)
    np.testing.assert_array_equal(buffer.array, [0, 0, 7.5, 0])
    kernel[1, 1](np.array((3, 2.5, buffer.address), record.dtype).tobytes())
    np.testing.assert_array_equal(buffer.array, [0, 0, 7.5, 2.5])
    with pytest.raises(InputError, match="expects 16 bytes, not 8"):
        kernel[1, 1](b"12345678")


def test_variables_live_as_long_as_the_module():
    module = ptxemu.loads(ptx.VARIABLES)
    out = np.zeros(3, np.int32)
    module["step"][1, 1](out)
    module["step"][1, 1](out)
    assert out[0] == 42
    assert out[1:2].view(np.float32)[0] == 2.0
    assert out[2] == -1
    counter = module.get_global("counter")
    assert counter.array == 42
    counter.array[...] = 7
    module.get_global("values").copy_from_host(np.array([9, 8, 7, 6], np.float32))
    module["step"][1, 1](out)
    assert out[0] == 8
    assert out[1:2].view(np.float32)[0] == 8.0
    np.testing.assert_array_equal(module.get_global("table").array, [-1, 0, 1])
    assert ptxemu.loads(ptx.VARIABLES).get_global("counter").array == 40
    with pytest.raises(InputError, match="did you mean 'counter'"):
        module.get_global("count")


def surface(values=range(32)):
    array = np.array(values, np.uint32)
    return ptxemu.default_device().surface(array, format="R32_UINT", geometry="1d", layout="linear")


def test_surfaces_by_handle_name_and_parameter():
    module = ptxemu.loads(ptx.SURFACES)
    target = surface()
    module["by_handle"][1, 32](target)
    module["by_param"][1, 32](target)
    module.bind("named", target)
    module["by_name"][1, 32]()
    np.testing.assert_array_equal(target.copy_to_host(), np.arange(3, 35))


def test_surface_errors():
    module = ptxemu.loads(ptx.SURFACES)
    with pytest.raises(Fault, match="unbound surface"):
        module["by_name"][1, 32]()
    with pytest.raises(InputError, match=r"no surface, texture or sampler 'nam'; did you mean 'named'"):
        module.bind("nam", surface())
    with pytest.raises(InputError, match=r"expects a surface \(.surfref\), not int"):
        module["by_param"][1, 32](5)
    closed = surface()
    closed.close()
    with pytest.raises(InputError, match="the surface is closed or belongs to another device"):
        module["by_handle"][1, 32](closed)
    with ptxemu.Device("16 MiB") as device:
        stranger = device.surface((4,), format="R32_UINT", geometry="1d", layout="linear")
        with pytest.raises(InputError, match="belongs to another device"):
            module["by_handle"][1, 32](stranger)


def test_a_bound_surface_outlives_its_object():
    module = ptxemu.loads(ptx.SURFACES)
    target = surface()
    module.bind("named", target)
    del target
    module["by_name"][1, 32]()


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (1, 1025, "block.x must be 1 to 1024"),
        (1, (32, 33), "1056 threads; the limit is 1024"),
        (1, (1, 1, 65), "block.z must be 1 to 64"),
        (0, 32, "grid.x must be 1 to 2147483647, not 0"),
        ((1, 65536), 32, "grid.y must be 1 to 65535"),
        ((1, 1, 1, 1), 32, "1 to 3 dimensions, not 4"),
        ((), 32, "1 to 3 dimensions, not 0"),
        (1.5, 32, "grid must be an integer"),
        ("4", 32, "grid must be an integer"),
        (1, -1, "block.x must be 1 to 1024, not -1"),
    ],
)
def test_wrong_shapes(saxpy, grid, block, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        saxpy[grid, block]


def test_kernel_limits():
    module = ptxemu.loads(ptx.BOUNDED)
    module["small"][1, (8, 8)]()
    with pytest.raises(InputError, match="at most 64 threads"):
        module["small"][1, 65]
    module["exact"][1, (32, 2)]()
    with pytest.raises(InputError, match="requires block 32 x 2 x 1"):
        module["exact"][1, 64]
    module["big_shared"][1, 32](shared=226 << 10)
    with pytest.raises(InputError, match="over the limit of 232448"):
        module["big_shared"][1, 32](shared=(226 << 10) + 1)
    with pytest.raises(InputError, match="must not be negative"):
        module["big_shared"][1, 32](shared=-1)


def test_wrong_calls(saxpy):
    x, y = data()
    with pytest.raises(InputError, match=r"takes 4 arguments .*not 3"):
        saxpy[1, 32](100, 1.0, x)
    with pytest.raises(InputError, match="needs a grid and a block"):
        saxpy(100, 1.0, x, y)
    with pytest.raises(InputError, match=r"kernel\[grid, block\]"):
        saxpy[4]
    with pytest.raises(InputError, match="timeout must be a positive number"):
        saxpy[4, 32](100, 1.0, x, y, timeout=0)
    with pytest.raises(InputError, match="did you mean 'saxpy'"):
        ptxemu.loads(ptx.SAXPY)["saxpi"]
    with pytest.raises(InputError, match="no kernels"):
        ptxemu.loads(ptx.HEAD)["anything"]


def test_nothing_is_launched_after_a_wrong_argument(saxpy):
    x, y = data()
    with pytest.raises(InputError):
        saxpy[4, 32](100, "two", x, y)
    np.testing.assert_array_equal(y, np.full(100, 0.5))


def test_a_module_is_a_mapping():
    module = ptxemu.loads(ptx.BOUNDED, filename="bounded.ptx")
    assert list(module) == ["small", "exact", "big_shared"]
    assert len(module) == 3
    assert "exact" in module
    assert "other" not in module
    assert repr(module) == "Module('bounded.ptx': small, exact, big_shared)"
    assert [parameter.type for parameter in ptxemu.loads(ptx.SAXPY)["saxpy"].info.parameters] == [
        "u32",
        "f32",
        "u64",
        "u64",
    ]


def test_a_fault_leaves_arrays_and_module_intact(saxpy):
    x, y = data()
    other = ptxemu.default_device().to_device(np.arange(10))
    with pytest.raises(Fault) as caught:
        saxpy[4, 32](100, 1.0, 8, y)
    assert caught.value.record["kernel"] == "saxpy"
    assert "<string>:17" in str(caught.value)
    np.testing.assert_array_equal(y, np.full(100, 0.5))
    np.testing.assert_array_equal(other.array, np.arange(10))
    saxpy[4, 32](100, 1.0, x, y)
    np.testing.assert_array_equal(y, x + np.float32(0.5))


def test_timeout():
    with pytest.raises(LaunchTimeout, match="did not end within"):
        ptxemu.loads(ptx.ENDLESS)["endless"][4, 64](timeout=0.05)


def test_printf_goes_where_it_is_told(capsys):
    module = ptxemu.loads(ptx.HELLO)
    seen: list[str] = []
    module["hello"][1, 3](printf=seen.append)
    assert "".join(seen) == "hello\n" * 3
    module["hello"][1, 1]()
    assert capsys.readouterr().out == "hello\n"


def test_load_errors(tmp_path: Path):
    with pytest.raises(InputError, match="no such file"):
        ptxemu.load(tmp_path / "missing.ptx")
    with pytest.raises(InputError, match="is a directory"):
        ptxemu.load(tmp_path)
    (tmp_path / "binary.ptx").write_bytes(b"\x7f\xff\xfe")
    with pytest.raises(InputError, match="not valid UTF-8"):
        ptxemu.load(tmp_path / "binary.ptx")
    (tmp_path / "zero.ptx").write_bytes(ptx.SAXPY.encode() + b"\0")
    assert "saxpy" in ptxemu.load(str(tmp_path / "zero.ptx"))
    with pytest.raises(PtxError) as caught:
        ptxemu.loads(ptx.BROKEN, filename="broken.ptx")
    assert [(record.line, record.file) for record in caught.value.diagnostics] == [(8, "broken.ptx"), (9, "broken.ptx")]


def test_unsupported_instructions_are_named():
    module = ptxemu.loads(ptx.UNSUPPORTED, filename="tensor.ptx")
    with pytest.raises(UnsupportedError, match=r"tensor.ptx:8: instruction 'fabric.submit"):
        module["tensor"][1, 32](0)


def test_lint():
    assert ptxemu.lint(ptx.SAXPY) == []
    found = ptxemu.lint(ptx.BROKEN)
    assert [(record.severity, record.line) for record in found] == [("error", 8), ("error", 9)]


def test_threads_may_share_a_module():
    kernel = ptxemu.loads(ptx.SAXPY)["saxpy"]
    outputs = [np.full(1000, number, np.float32) for number in range(8)]
    x = np.ones(1000, np.float32)
    x.flags.writeable = False
    threads = [threading.Thread(target=kernel[32, 32], args=(1000, 1.0, x, y)) for y in outputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, y in enumerate(outputs):
        np.testing.assert_array_equal(y, np.full(1000, number + 1))
