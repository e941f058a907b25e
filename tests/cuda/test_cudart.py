"""libcudart: a C program that registers a fat binary as nvcc's code does, run on both versions of the library."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from ptxemu.images.fatbin import PTX
from ptxemu.process.cuda import library_path
from tests.images.test_fatbin import fat
from tests.support.places import ROOT, TESTS

DATA = TESTS / "cuda" / "data"
VERSIONS = ("12", "13")
SECONDS = 300


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("image") / "kernels.fatbin"
    path.write_bytes(fat((PTX, 75, (DATA / "kernels.ptx").read_bytes())))
    return path


@pytest.fixture(scope="module", params=VERSIONS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, linked to a version of the library."""
    path = tmp_path_factory.mktemp("program") / "host"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    library = library_path() / f"libcudart.so.{request.param}"
    options = ["-std=gnu11", "-O1", "-Wall", "-Werror", "-D_GNU_SOURCE", "-pthread"]
    options += [*(f"-I{ROOT / folder}" for folder in ("cuda", "cuda/driver")), f"-DVERSION={request.param}"]
    command = [
        *compiler,
        *options,
        "-o",
        path,
        *sorted(DATA.glob("*.c")),
        library,
        f"-Wl,-rpath-link,{library_path()}:{library_path().parents[1]}",
    ]
    subprocess.run(command, check=True)
    return path


@pytest.fixture(params=["all CPUs", "one CPU"])
def processors(request: pytest.FixtureRequest) -> Iterator[None]:
    """Those of programs: with one, launches begin on the thread that asks for them."""
    before = os.sched_getaffinity(0)
    if request.param == "one CPU":
        os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def run(program: Path, image: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {"PTXEMU_PYTHON": sys.executable, **os.environ, "LD_LIBRARY_PATH": str(library_path()), **environment}
    return subprocess.run(
        [program, image, *arguments], env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def said(program: Path, image: Path, *arguments: str, **environment: str) -> list[str]:
    """The lines that a program writes; nothing went wrong."""
    done = run(program, image, *arguments, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_kernels_run(program, image):
    assert said(program, image, "add") == ["right"]


def test_symbols_are_the_modules_variables(program, image):
    first, *errors = said(program, image, "symbols")
    assert first == "3 4 | 4 10 18 28 | 8"
    assert errors == ["cudaErrorInvalidValue", "cudaErrorInvalidSymbol"]


def test_output_keeps_its_order(program, image):
    assert said(program, image, "printf") == ["before", "hello 0 of 3", "hello 1 of 3", "hello 2 of 3", "after"]


def test_a_fault_stays_until_the_device_is_reset(program, image):
    done = run(program, image, "fault")
    assert done.stdout.splitlines() == ["cudaErrorIllegalAddress"] * 4 + ["told", "right again"]
    assert done.stderr.count("illegal address in kernel `store`") == 1


def test_around_allocations_there_is_slack_as_on_a_gpu(program, image):
    assert said(program, image, "slack") == [*["cudaSuccess"] * 3, "cudaErrorIllegalAddress"]
    done = run(program, image, "slack", PTXEMU_GUARD="strict")
    assert done.stdout.splitlines() == [*["cudaErrorIllegalAddress"] * 4]


def test_errors_are_cudas(program, image):
    assert said(program, image, "errors") == [
        "cudaErrorNotSupported",
        "cudaErrorNotSupported",
        "cudaSuccess",
        "cudaErrorInvalidDeviceFunction",
        "cudaErrorInvalidConfiguration",
        "cudaErrorInvalidConfiguration",
        "cudaErrorInvalidValue",
        "cudaErrorLaunchOutOfResources",
        "cudaErrorInvalidValue",
        "cudaSuccess",
        "cudaSuccess",
        *["cudaErrorInvalidValue"] * 3,
        "cudaErrorInvalidMemcpyDirection",
        "cudaErrorInvalidValue",
        "cudaSuccess",
        "cudaErrorInvalidValue",
        "cudaErrorMemoryAllocation",
    ]


def test_arrays_textures_and_surfaces(program, image):
    wanted = ["texels", "cudaErrorInvalidValue", "cudaErrorInvalidValue", "cudaErrorInvalidResourceHandle"]
    assert said(program, image, "arrays") == wanted


def test_boxes_are_copied_as_by_hand(program, image):
    assert said(program, image, "boxes") == ["boxes"]


def test_kernels_reach_registered_memory_as_long_as_it_is_registered(program, image):
    wanted = ["7 cudaErrorHostMemoryAlreadyRegistered", "cudaErrorHostMemoryNotRegistered", "cudaErrorIllegalAddress"]
    assert said(program, image, "registered") == wanted


@pytest.mark.usefixtures("processors")
def test_threads_launch_side_by_side(program, image):
    assert said(program, image, "threads") == ["right"]


@pytest.mark.usefixtures("processors")
def test_a_stream_does_its_work_in_order(program, image):
    assert said(program, image, "order") == [
        "cudaErrorNotReady cudaErrorNotReady cudaErrorNotReady",
        "cudaSuccess",
        "0 0",
        "cudaErrorNotPermitted",
        "called with its stream cudaSuccess",
        "17283 1010101 later",
    ]


@pytest.mark.usefixtures("processors")
def test_which_streams_wait_for_each_other(program, image):
    assert said(program, image, "default stream") == [
        "2",
        "25 cudaErrorNotReady cudaErrorNotReady",
        "25134",
        "cudaErrorNotReady",
        "2513467",
    ]


@pytest.mark.usefixtures("processors")
def test_a_fault_in_a_stream_comes_to_light_later(program, image):
    done = run(program, image, "late fault")
    assert done.stdout.splitlines() == [
        "called with its stream cudaErrorIllegalAddress",
        "cudaErrorIllegalAddress",
        "8",
        "cudaErrorIllegalAddress",
    ]
    assert done.stderr.count("illegal address in kernel `store`") == 1


@pytest.mark.usefixtures("processors")
def test_a_reset_ends_what_runs(program, image):
    assert said(program, image, "reset") == ["right"]


@pytest.mark.usefixtures("processors")
def test_captured_streams_are_graphs(program, image):
    assert said(program, image, "graph") == [
        "0 0 1 6 1",
        "0 0",
        *["cudaErrorNotPermitted"] * 2,
        "127312734 2020202",
    ]


def test_what_cannot_be_captured_makes_a_capture_invalid(program, image):
    assert said(program, image, "capture errors") == [
        "cudaErrorStreamCaptureUnsupported",
        *["cudaErrorIllegalState"] * 2,
        *["cudaErrorStreamCaptureUnsupported", "cudaErrorStreamCaptureInvalidated"],
        *["cudaErrorCapturedEvent", "cudaErrorStreamCaptureInvalidated", "cudaErrorCapturedEvent"],
        "cudaErrorStreamCaptureUnjoined",
        *["cudaErrorStreamCaptureUnmatched", "cudaErrorStreamCaptureInvalidated"],
        *["cudaErrorStreamCaptureIsolation", "cudaErrorStreamCaptureInvalidated"],
        *["cudaErrorStreamCaptureMerge", *["cudaErrorStreamCaptureInvalidated"] * 2],
        *["cudaErrorStreamCaptureImplicit", "cudaSuccess"],
        *["cudaErrorStreamCaptureImplicit", "cudaErrorStreamCaptureInvalidated"],
        *["cudaErrorStreamCaptureUnsupported", "cudaErrorStreamCaptureInvalidated"],
        *["cudaErrorStreamCaptureWrongThread", "cudaSuccess"],
        "6",
    ]


def test_threads_share_captures_and_graphs(program, image):
    assert said(program, image, "graph threads") == ["right"]


def test_graphs_are_made_and_changed_node_by_node(program, image):
    assert said(program, image, "nodes") == [
        "1 1 2 | 11223344 4 1 | 4 4 | 1",
        "5 1 1 1 3",
        "192 11223344 11223344",
        "95 11223344 3344",
        "1 1 2 | 11223344 4 1 | 4 4 | 1",
        "192 70707 70707",
        *["cudaErrorGraphExecUpdateFailure", "2"],
        "12 70707 70707",
    ]


def test_graphs_within_graphs_and_clones(program, image):
    assert said(program, image, "children") == [
        "31924 11223344 11223344",
        "cudaErrorGraphExecUpdateFailure",
        *["cudaErrorInvalidValue"] * 2,
        "1924 11223344 11223344",
    ]


def test_wrong_graphs_are_errors(program, image):
    assert said(program, image, "graph errors") == [
        *["cudaErrorInvalidValue"] * 3,
        "cudaErrorInvalidConfiguration",
        *["cudaErrorInvalidValue"] * 7,
        "192 11223344 11223344",
        "cudaErrorInvalidValue",
        "1",
        "1928 11223344 11223344",
    ]


WRONG_HANDLE = [  # what each function of handles.c answers, by the kinds of handles that it takes
    ["cudaErrorInvalidResourceHandle"] * 3,
    ["cudaErrorInvalidResourceHandle"] * 3,
    *[["cudaErrorInvalidValue"] * 2] * 3,
    ["cudaErrorInvalidResourceHandle"] * 5,
    ["cudaErrorInvalidResourceHandle"] * 2,
    ["cudaErrorInvalidValue"],
]


def test_a_node_repeats_a_graph_as_long_as_a_kernel_says(program, image):
    many = (int("1" * 4000 + "171615") + 2**63) % 2**64 - 2**63  # the digits that 64 bits keep
    assert said(program, image, "loop") == [f"15 1615 171615 1171615 {many} 0"]


def test_a_node_chooses_between_graphs(program, image):
    assert said(program, image, "branches") == ["0 4 3 3 3 3 "]


def test_wrong_choices_are_errors(program, image):
    done = run(program, image, "choice errors")
    wanted = [*["cudaErrorInvalidValue"] * 7, *["cudaErrorNotSupported"] * 2, "cudaErrorInvalidValue"]
    assert done.stdout.splitlines() == [*wanted, "cudaErrorIllegalAddress"]


def test_nodes_allocate_and_free_memory(program, image):
    assert said(program, image, "graph memory") == [
        "10 freed",
        *["cudaErrorNotSupported"] * 2,
        *["cudaErrorInvalidValue"] * 2,
        "cudaErrorNotSupported",
        "3030303 0 4",
        "cudaErrorInvalidValue",
        "0",
    ]


def test_memory_of_a_graph_may_outlive_it(program, image):
    errors = ["cudaErrorInvalidValue", "cudaSuccess", "cudaErrorInvalidValue", "cudaSuccess", "cudaSuccess"]
    assert said(program, image, "graph memory left") == [*errors, "3030303 4", "0"]


def test_wild_handles_are_errors(program, image):
    assert said(program, image, "wild") == [*chain(*WRONG_HANDLE)] * 6


def test_handles_of_another_kind_are_errors(program, image):
    others = [answers for own in range(len(WRONG_HANDLE)) for kind, answers in enumerate(WRONG_HANDLE) if kind != own]
    assert said(program, image, "wrong kind") == [*chain(*others)]


def test_destroyed_handles_are_errors(program, image):
    assert said(program, image, "destroyed") == [
        "cudaErrorInvalidResourceHandle",
        *chain(*WRONG_HANDLE[:-1]),
        *WRONG_HANDLE[5],
    ]


def test_graphs_may_outlive_what_they_copy(program, image):
    assert said(program, image, "freed under graph") == ["4", "cudaErrorIllegalAddress"] * 2


def test_a_thread_may_destroy_what_others_use(program, image):
    assert said(program, image, "destroyed by a thread") == ["right"]


def test_both_apis_have_the_same_contexts(program, image):
    assert said(program, image, "contexts") == ["3 1 1 1 1 709 1"]


def test_both_apis_have_the_same_memory_and_kernels(program, image):
    assert said(program, image, "mixed memory") == ["right"]


def test_both_apis_have_the_same_streams_and_events(program, image):
    assert said(program, image, "mixed streams") == ["600 0 12 400"]


def test_an_error_of_one_api_is_one_of_the_other(program, image):
    done = run(program, image, "mixed errors")
    assert done.stdout.splitlines() == ["cudaErrorIllegalAddress", "700", "0 0 1 1"], done.stderr
    assert done.stderr.count("illegal address") == 1 and done.returncode == 0


def test_streams_of_many_threads(program, image):
    assert said(program, image, "many") == ["right"]


def test_threads_may_have_small_stacks(program, image):
    assert said(program, image, "small stack") == ["hello 0 of 1", "cudaErrorIllegalAddress"]


def test_a_forked_child_is_told(program, image):
    assert said(program, image, "fork") == ["child: cudaErrorInitializationError", "parent: right"]


def test_processes_share_memory(program, image):
    assert said(program, image, "ipc memory") == [
        "123",
        "cudaErrorInvalidValue",
        "the same 123",
        "cudaSuccess",
        "cudaErrorInvalidValue",
        "cudaErrorInvalidResourceHandle",
        "0",
    ]


def test_processes_count_together(program, image):
    assert said(program, image, "ipc counter") == ["2000000", "0"]


def test_processes_wait_for_each_others_events(program, image):
    wanted = ["cudaErrorNotReady", "cudaErrorNotReady", "cudaSuccess", "123", "cudaErrorLaunchFailure", "0"]
    assert said(program, image, "ipc events") == wanted


def test_what_cannot_be_shared_is_an_error(program, image):
    assert said(program, image, "ipc errors") == [
        "cudaErrorDeviceUninitialized",
        *["cudaErrorInvalidValue"] * 3,
        *["cudaErrorInvalidResourceHandle"] * 2,
        "cudaErrorInvalidValue",
        "cudaErrorInvalidResourceHandle",
    ]


def test_launches_and_loads_leave_nothing(program, image):
    (kilobytes,) = said(program, image, "launches", "10000")
    assert int(kilobytes) < 1000
    (kilobytes,) = said(program, image, "loads", "1000")
    assert int(kilobytes) < 2000


def test_a_warm_cache_needs_no_python(program, image, tmp_path):
    assert said(program, image, "add", PTXEMU_CACHE=str(tmp_path)) == ["right"]
    assert said(program, image, "add", PTXEMU_CACHE=str(tmp_path), PTXEMU_PYTHON="/nowhere", PATH="") == ["right"]


def test_a_cold_cache_without_python_is_one_clear_error(program, image, tmp_path):
    copied = tmp_path / "cuda" / "lib"
    copied.mkdir(parents=True)
    for file in (*library_path().glob("*.so*"), library_path().parents[1] / "libptxemu.so"):
        (copied / file.name if "cuda" in file.name or "ocelot" in file.name else tmp_path / file.name).write_bytes(
            file.read_bytes()
        )
    empty = {
        "PTXEMU_CACHE": str(tmp_path / "none"),
        "PTXEMU_PYTHON": "/nowhere/python",
        "PATH": "",
        "LD_LIBRARY_PATH": str(copied),
    }
    done = run(program, image, "add", **empty)
    assert done.returncode == 1
    assert "cudaErrorInvalidPtx" in done.stdout
    wanted = "ptxemu: no Python that has ptxemu was found to compile with; tried /nowhere/python (PTXEMU_PYTHON)"
    assert [line for line in done.stderr.splitlines() if line] == [wanted]


def test_without_a_cache_nothing_runs_and_the_reason_is_said(program, image):
    done = run(program, image, "add", PTXEMU_CACHE="off")
    assert done.returncode == 1
    assert "handed over through the cache" in done.stderr


FORGETFUL = f"""#!{sys.executable}
import socket
from ptxemu.serve.__main__ import HELLO
from ptxemu.serve.protocol import Channel

channel = Channel(socket.socket(fileno=3))
channel.send([HELLO])
while channel.receive() is not None:
    channel.send([b"ok", b""])
"""


def test_code_that_the_compiler_has_made_for_another_build_is_one_clear_error(program, image, tmp_path):
    server = tmp_path / "python"  # which says that it has made what is asked for
    server.write_text(FORGETFUL)
    server.chmod(0o755)
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    done = run(program, image, "add", PTXEMU_PYTHON=str(server), PTXEMU_CACHE=str(folder), PYTHONPATH=str(ROOT))
    assert done.returncode == 1 and "cudaErrorInitializationError" in done.stdout
    assert [line for line in done.stderr.splitlines() if "another build" in line], done.stderr


def test_wrong_images_are_errors(program, tmp_path):
    wrong = tmp_path / "wrong"
    for data in (b"\0" * 64, fat((2, 80, b"machine code")), fat((PTX, 90, b".version 8.0")), fat((PTX, 75, b"nonsense"))):
        wrong.write_bytes(data)
        done = run(program, wrong, "add")
        assert done.returncode == 1
        assert "cudaError" in done.stdout


MACHINE_CODE = fat((2, 80, b"machine code"))


def linked_image(folder: Path, *names: str) -> Path:
    """Fat binaries of files, and one without PTX, as CUDA's library of device functions is."""
    path = folder / "linked"
    path.write_bytes(b"".join(fat((PTX, 75, (DATA / f"{name}.ptx").read_bytes())) for name in names) + MACHINE_CODE)
    return path


def test_a_program_of_several_files_is_linked(program, tmp_path):
    image = linked_image(tmp_path, "caller", "kernels", "called")
    assert said(program, image, "apply") == ["42"]
    assert said(program, image, "add") == ["right"]


def test_what_a_link_lacks_is_said(program, tmp_path):
    done = run(program, linked_image(tmp_path, "caller", "kernels"), "apply")
    assert done.returncode == 1
    assert "cudaErrorInvalidPtx" in done.stdout
    assert "'twice'" in done.stderr
    assert "input 3 of the link is left out: the fat binary holds no PTX, only machine code for sm_80" in done.stderr


def test_a_program_of_several_files_that_hold_no_ptx_is_an_error(program, tmp_path):
    image = linked_image(tmp_path)
    image.write_bytes(MACHINE_CODE * 2)
    done = run(program, image, "add")
    assert done.returncode == 1
    assert "input 2 of the link is left out" in done.stderr
