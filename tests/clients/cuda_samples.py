"""NVIDIA's cuda-samples on ptxemu: builds those that check themselves with nvcc, runs each, and says what came of it.

``python -m tests.clients.cuda_samples DIRECTORY [NAME ...]``: a checkout of https://github.com/NVIDIA/cuda-samples. Needs nvcc.
NVRTC and cuRAND are installed with pip. Programs are kept in ``build/clients`` between runs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ptxemu.process.cuda import library_path
from tests.clients.environment import CLIENTS, packages_of, python_of
from tests.clients.nvcc import compiled, report, run, written_smaller

BUILD = CLIENTS / "cuda-samples"
SECONDS = 240
WAIVED = 2
LIBRARIES = ["nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-cccl", "nvidia-cuda-crt", "nvidia-curand"]
HEADERS = ("cooperative_groups.h", "cooperative_groups", "cccl/nv", "cccl/cuda")
"""What programs give to NVRTC, which they look for beside themselves."""

# name: arguments that make it small enough for a CPU
SAMPLES: dict[str, list[str]] = {
    "0_Introduction/asyncAPI": [],
    "0_Introduction/clock": [],
    "0_Introduction/clock_nvrtc": [],
    "0_Introduction/cudaOpenMP": [],
    "0_Introduction/fp16ScalarProduct": [],
    "0_Introduction/matrixMul": ["-wA=64", "-hA=64", "-wB=64", "-hB=64"],
    "0_Introduction/matrixMul_nvrtc": [],
    "0_Introduction/matrixMulDrv": [],
    "0_Introduction/matrixMulDynlinkJIT": [],
    "0_Introduction/mergeSort": [],
    "0_Introduction/simpleAssert": [],
    "0_Introduction/simpleAssert_nvrtc": [],
    "0_Introduction/simpleAtomicIntrinsics": [],
    "0_Introduction/simpleAtomicIntrinsics_nvrtc": [],
    "0_Introduction/simpleAttributes": [],
    "0_Introduction/simpleAWBarrier": [],
    "0_Introduction/simpleCallback": [],
    "0_Introduction/simpleCooperativeGroups": [],
    "0_Introduction/simpleCubemapTexture": [],
    "0_Introduction/simpleDrvRuntime": [],
    "0_Introduction/simpleHyperQ": [],
    "0_Introduction/simpleIPC": [],
    "0_Introduction/simpleLayeredTexture": [],
    "0_Introduction/simpleMultiCopy": [],
    "0_Introduction/simpleMultiGPU": [],
    "0_Introduction/simpleOccupancy": [],
    "0_Introduction/simpleP2P": [],
    "0_Introduction/simplePitchLinearTexture": [],
    "0_Introduction/simplePrintf": [],
    "0_Introduction/simpleStreams": [],
    "0_Introduction/simpleSurfaceWrite": [],
    "0_Introduction/simpleTemplates": [],
    "0_Introduction/simpleTexture": [],
    "0_Introduction/simpleTextureDrv": [],
    "0_Introduction/simpleVoteIntrinsics": [],
    "0_Introduction/simpleZeroCopy": [],
    "0_Introduction/systemWideAtomics": [],
    "0_Introduction/template": [],
    "0_Introduction/UnifiedMemoryStreams": [],
    "0_Introduction/vectorAdd": [],
    "0_Introduction/vectorAdd_nvrtc": [],
    "0_Introduction/vectorAddDrv": [],
    "0_Introduction/vectorAddMMAP": [],
    "1_Utilities/deviceQuery": [],
    "1_Utilities/deviceQueryDrv": [],
    "1_Utilities/topologyQuery": [],
    "2_Concepts_and_Techniques/convolutionSeparable": [],
    "2_Concepts_and_Techniques/convolutionTexture": [],
    "2_Concepts_and_Techniques/dct8x8": [],
    "2_Concepts_and_Techniques/eigenvalues": [],
    "2_Concepts_and_Techniques/histogram": [],
    "2_Concepts_and_Techniques/inlinePTX": [],
    "2_Concepts_and_Techniques/inlinePTX_nvrtc": [],
    "2_Concepts_and_Techniques/interval": [],
    "2_Concepts_and_Techniques/MC_EstimatePiInlineP": [],
    "2_Concepts_and_Techniques/MC_EstimatePiInlineQ": [],
    "2_Concepts_and_Techniques/MC_EstimatePiP": [],
    "2_Concepts_and_Techniques/MC_EstimatePiQ": [],
    "2_Concepts_and_Techniques/MC_SingleAsianOptionP": [],
    "2_Concepts_and_Techniques/radixSortThrust": ["-n=65536"],
    "2_Concepts_and_Techniques/reduction": ["--n=65536"],
    "2_Concepts_and_Techniques/reductionMultiBlockCG": [],
    "2_Concepts_and_Techniques/scalarProd": [],
    "2_Concepts_and_Techniques/scan": [],
    "2_Concepts_and_Techniques/segmentationTreeThrust": [],
    "2_Concepts_and_Techniques/shfl_scan": [],
    "2_Concepts_and_Techniques/sortingNetworks": [],
    "2_Concepts_and_Techniques/streamOrderedAllocation": [],
    "2_Concepts_and_Techniques/streamOrderedAllocationIPC": [],
    "2_Concepts_and_Techniques/streamOrderedAllocationP2P": [],
    "2_Concepts_and_Techniques/threadFenceReduction": [],
    "2_Concepts_and_Techniques/threadMigration": [],
    "3_CUDA_Features/bf16TensorCoreGemm": [],
    "3_CUDA_Features/binaryPartitionCG": [],
    "3_CUDA_Features/cdpAdvancedQuicksort": [],
    "3_CUDA_Features/cdpBezierTessellation": [],
    "3_CUDA_Features/cdpQuadtree": [],
    "3_CUDA_Features/cdpSimplePrint": [],
    "3_CUDA_Features/cdpSimpleQuicksort": [],
    "3_CUDA_Features/cudaCompressibleMemory": [],
    "3_CUDA_Features/cudaTensorCoreGemm": [],
    "3_CUDA_Features/dmmaTensorCoreGemm": [],
    "3_CUDA_Features/globalToShmemAsyncCopy": ["-wA=128", "-hA=128", "-wB=128", "-hB=128"],
    "3_CUDA_Features/graphConditionalNodes": [],
    "3_CUDA_Features/graphMemoryFootprint": [],
    "3_CUDA_Features/graphMemoryNodes": [],
    "3_CUDA_Features/immaTensorCoreGemm": [],
    "3_CUDA_Features/jacobiCudaGraphs": [],
    "3_CUDA_Features/memMapIPCDrv": [],
    "3_CUDA_Features/newdelete": [],
    "3_CUDA_Features/ptxjit": [],
    "3_CUDA_Features/simpleCudaGraphs": [],
    "3_CUDA_Features/StreamPriorities": [],
    "3_CUDA_Features/tf32TensorCoreGemm": [],
    "3_CUDA_Features/warpAggregatedAtomicsCG": [],
    "4_CUDA_Libraries/conjugateGradientMultiBlockCG": [],
    "4_CUDA_Libraries/conjugateGradientMultiDeviceCG": [],
    "4_CUDA_Libraries/lineOfSight": [],
    "4_CUDA_Libraries/MersenneTwisterGP11213": [],
    "5_Domain_Specific/binomialOptions": [],
    "5_Domain_Specific/binomialOptions_nvrtc": [],
    "5_Domain_Specific/BlackScholes": [],
    "5_Domain_Specific/BlackScholes_nvrtc": [],
    "5_Domain_Specific/dwtHaar1D": [],
    "5_Domain_Specific/dxtc": [],
    "5_Domain_Specific/fastWalshTransform": [],
    "5_Domain_Specific/FDTD3d": ["--dimx=64", "--dimy=64", "--dimz=32", "--timesteps=2"],
    "5_Domain_Specific/HSOpticalFlow": [],
    "5_Domain_Specific/MonteCarloMultiGPU": [],
    "5_Domain_Specific/NV12toBGRandResize": [],
    "5_Domain_Specific/p2pBandwidthLatencyTest": [],
    "5_Domain_Specific/quasirandomGenerator": [],
    "5_Domain_Specific/quasirandomGenerator_nvrtc": [],
    "5_Domain_Specific/SobolQRNG": [],
    "5_Domain_Specific/stereoDisparity": [],
    "6_Performance/alignedTypes": [],
    "6_Performance/cudaGraphsPerfScaling": [],
    "6_Performance/LargeKernelParameter": [],
    "6_Performance/transpose": ["-dimX=128", "-dimY=128"],
    "6_Performance/UnifiedMemoryPerf": [],
}
SMALLER = {
    **{
        f"3_CUDA_Features/{kind}TensorCoreGemm": {
            "#define CPU_DEBUG 0": "#define CPU_DEBUG 1",
            **{f"#define {side}_TILES {tiles}": f"#define {side}_TILES {few}" for side in "MNK"},
        }
        for kind, tiles, few in (("bf16", 512, 16), ("cuda", 256, 16), ("dmma", 1024, 32), ("imma", 256, 16), ("tf32", 512, 16))
    },
    "6_Performance/UnifiedMemoryPerf": {
        "#define VERIFY_GPU_CORRECTNESS 0": "#define VERIFY_GPU_CORRECTNESS 1",
        "maxSampleSizeInMb = 64;": "maxSampleSizeInMb = 1;",
    },
}
"""Programs whose sizes are in their source, and that compare their results if it says so: what it says, and what is put there."""
SAYS = {name: r"(?s)\A(?!.*mismatch).*Verifying correctness" for name in SMALLER if "TensorCore" in name}
"""What those say whose results are right, and which end well in any case."""
EXPECTED = {
    "0_Introduction/UnifiedMemoryStreams": "needs cuBLAS",
    "2_Concepts_and_Techniques/MC_EstimatePiP": "needs cuRAND's machine code",
    "2_Concepts_and_Techniques/MC_EstimatePiQ": "needs cuRAND's machine code",
    "4_CUDA_Libraries/MersenneTwisterGP11213": "needs cuRAND's machine code",
}
NEEDS = {
    **{name: ["-l:libnvrtc.so.13"] for name in SAMPLES if name.endswith("_nvrtc")},
    **{name: ["-l:libcurand.so.10"] for name in SAMPLES if "/MC_" in name or "/MonteCarlo" in name or "/Mersenne" in name},
    "0_Introduction/matrixMulDynlinkJIT": ["-ldl"],
}
"""Libraries that programs are linked with."""
OPTIONS = {
    "0_Introduction/cudaOpenMP": ["-Xcompiler=-fopenmp"],
    **{name: ["-rdc=true", "-lcudadevrt"] for name in SAMPLES if "/cdp" in name},
}


def modules(folder: Path) -> dict[str, Path]:
    """The kernels that a program loads from files, by the names of these."""
    program = "".join(path.read_text(errors="replace") for path in folder.glob("*.cpp"))
    names = {f"{path.stem}64.{kind}": path for path in folder.glob("*.cu") for kind in ("fatbin", "ptx")}
    return {name: path for name, path in names.items() if f'"{name}"' in program}


def libraries() -> Path:
    """The folder of NVRTC's and cuRAND's ``include`` and ``lib``."""
    return packages_of(python_of("cuda-libraries", LIBRARIES)) / "nvidia" / "cu13"


def headers_of(name: str) -> Path:
    """The folder of a library's headers, without those of the toolkit, which are nvcc's own."""
    here = BUILD / f"{name}.include"
    here.mkdir(parents=True, exist_ok=True)
    for path in (libraries() / "include").glob(f"{name}*.h"):
        if not (here / path.name).exists():
            (here / path.name).symlink_to(path)
    return here


def place(samples: Path, name: str) -> Path:
    """Where a program finds all that it reads."""
    folder, here = samples / "Samples" / name, BUILD / f"{Path(name).name}.files"
    here.mkdir(parents=True, exist_ok=True)
    headers = [libraries() / "include" / header for header in HEADERS] if name.endswith("_nvrtc") else []
    for path in [*folder.iterdir(), *headers]:
        if not (here / path.name).exists():
            (here / path.name).symlink_to(path)
    for made, source in modules(folder).items():
        compiled(here / made, [source], [f"-{made.rpartition('.')[2]}", f"-I{samples / 'Common'}"])
    return here


def sources_of(samples: Path, name: str) -> list[Path]:
    """What a program is made of, with other sizes where its source has them."""
    folder = samples / "Samples" / name
    loaded = set(folder.glob("*.cu")) if name.endswith("_nvrtc") else set(modules(folder).values())
    found = sorted(path for pattern in ("*.cu", "*.cpp", "*.c") for path in folder.rglob(pattern) if path not in loaded)
    if any("helper_multiprocess.h" in path.read_text(errors="replace") for path in found):
        found.append(samples / "Common" / "helper_multiprocess.cpp")
    copies = BUILD / f"{folder.name}.sources"
    return [written_smaller(path, SMALLER[name], copies / path.name) for path in found] if name in SMALLER else found


def build(samples: Path, name: str) -> Path:
    folder, lib = samples / "Samples" / name, libraries() / "lib"
    sources = sources_of(samples, name)
    includes = [samples / "Common", folder, folder / "inc", *map(headers_of, ("nvrtc", "curand"))]
    flags = ["-std=c++17", *(f"-I{path}" for path in includes), *OPTIONS.get(name, ())]
    linked = [f"-L{library_path()}", "-l:libcuda.so.1", f"-L{lib}", f"-Xlinker=-rpath={lib}", *NEEDS.get(name, ())]
    return compiled(BUILD / folder.name, sources, flags, libraries=linked)


def outcome(samples: Path, name: str) -> str:
    full = next(full for full in SAMPLES if name in (full, Path(full).name))
    done = run([build(samples, full), *SAMPLES[full]], place(samples, full), SECONDS)
    if done.status == WAIVED:
        return "waived by itself"
    if not done.status and not re.search(SAYS.get(full, ""), done.output):
        return "FAILED: its results are not right"
    return done.failed if done.status else done.passed


def main() -> int:
    return report(__doc__, SAMPLES, outcome, EXPECTED)


if __name__ == "__main__":
    sys.exit(main())
