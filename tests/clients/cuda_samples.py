"""NVIDIA's cuda-samples on ptxemu: builds those that check themselves with nvcc, runs each, and says what came of it.

``python -m tests.clients.cuda_samples DIRECTORY [NAME ...]``: a checkout of https://github.com/NVIDIA/cuda-samples. Needs nvcc.
Programs are kept in ``build/clients`` between runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ptxemu.process.cuda import library_path
from tests.clients.environment import CLIENTS
from tests.clients.nvcc import compiled, report, run

BUILD = CLIENTS / "cuda-samples"
SECONDS = 240
WAIVED = 2

# name: arguments that make it small enough for a CPU
SAMPLES: dict[str, list[str]] = {
    "0_Introduction/asyncAPI": [],
    "0_Introduction/clock": [],
    "0_Introduction/fp16ScalarProduct": [],
    "0_Introduction/matrixMul": ["-wA=64", "-hA=64", "-wB=64", "-hB=64"],
    "0_Introduction/mergeSort": [],
    "0_Introduction/simpleAWBarrier": [],
    "0_Introduction/simpleAssert": [],
    "0_Introduction/simpleAtomicIntrinsics": [],
    "0_Introduction/simpleAttributes": [],
    "0_Introduction/simpleCallback": [],
    "0_Introduction/simpleCooperativeGroups": [],
    "0_Introduction/simpleCubemapTexture": [],
    "0_Introduction/simpleHyperQ": [],
    "0_Introduction/simpleLayeredTexture": [],
    "0_Introduction/simpleMultiCopy": [],
    "0_Introduction/simpleOccupancy": [],
    "0_Introduction/simplePitchLinearTexture": [],
    "0_Introduction/simplePrintf": [],
    "0_Introduction/simpleStreams": [],
    "0_Introduction/simpleSurfaceWrite": [],
    "0_Introduction/simpleTemplates": [],
    "0_Introduction/simpleTexture": [],
    "0_Introduction/simpleVoteIntrinsics": [],
    "0_Introduction/simpleZeroCopy": [],
    "0_Introduction/systemWideAtomics": [],
    "0_Introduction/template": [],
    "0_Introduction/UnifiedMemoryStreams": [],
    "0_Introduction/vectorAdd": [],
    "1_Utilities/deviceQuery": [],
    "2_Concepts_and_Techniques/convolutionSeparable": [],
    "2_Concepts_and_Techniques/convolutionTexture": [],
    "2_Concepts_and_Techniques/dct8x8": [],
    "2_Concepts_and_Techniques/eigenvalues": [],
    "2_Concepts_and_Techniques/histogram": [],
    "2_Concepts_and_Techniques/inlinePTX": [],
    "2_Concepts_and_Techniques/reduction": ["--n=65536"],
    "2_Concepts_and_Techniques/reductionMultiBlockCG": [],
    "2_Concepts_and_Techniques/scalarProd": [],
    "2_Concepts_and_Techniques/scan": [],
    "2_Concepts_and_Techniques/shfl_scan": [],
    "2_Concepts_and_Techniques/sortingNetworks": [],
    "2_Concepts_and_Techniques/threadFenceReduction": [],
    "2_Concepts_and_Techniques/threadMigration": [],
    "3_CUDA_Features/bf16TensorCoreGemm": [],
    "3_CUDA_Features/binaryPartitionCG": [],
    "3_CUDA_Features/newdelete": [],
    "3_CUDA_Features/StreamPriorities": [],
    "3_CUDA_Features/warpAggregatedAtomicsCG": [],
    "5_Domain_Specific/BlackScholes": [],
    "5_Domain_Specific/binomialOptions": [],
    "5_Domain_Specific/fastWalshTransform": [],
    "5_Domain_Specific/HSOpticalFlow": [],
    "5_Domain_Specific/MonteCarloMultiGPU": [],
    "5_Domain_Specific/quasirandomGenerator": [],
    "5_Domain_Specific/SobolQRNG": [],
    "5_Domain_Specific/dxtc": [],
    "6_Performance/alignedTypes": [],
    "6_Performance/transpose": ["-dimX=128", "-dimY=128"],
    "6_Performance/UnifiedMemoryPerf": [],
}
EXPECTED = {
    "0_Introduction/UnifiedMemoryStreams": "needs cuBLAS",
    "2_Concepts_and_Techniques/threadMigration": "needs a fat binary that its own build makes",
    "5_Domain_Specific/MonteCarloMultiGPU": "needs cuRAND",
}


def build(samples: Path, name: str) -> Path:
    folder = samples / "Samples" / name
    sources = sorted(path for pattern in ("*.cu", "*.cpp") for path in folder.glob(pattern))
    flags = ["-std=c++17", f"-I{samples / 'Common'}", f"-I{folder}"]
    return compiled(BUILD / folder.name, sources, flags, libraries=[f"-L{library_path()}", "-l:libcuda.so.1"])


def outcome(samples: Path, name: str) -> str:
    full = next(full for full in SAMPLES if name in (full, Path(full).name))
    done = run([build(samples, full), *SAMPLES[full]], samples / "Samples" / full, SECONDS)
    if done.status == WAIVED:
        return "waived by itself"
    return done.failed if done.status else done.passed


def main() -> int:
    return report(__doc__, SAMPLES, outcome, EXPECTED)


if __name__ == "__main__":
    sys.exit(main())
