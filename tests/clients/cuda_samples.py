"""NVIDIA's cuda-samples on ptxemu: builds those that check themselves with nvcc, runs each, and says what came of it.

``python -m tests.clients.cuda_samples DIRECTORY [NAME ...]``: a checkout of https://github.com/NVIDIA/cuda-samples. Needs nvcc.
Programs are kept in ``build/clients`` between runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.support.places import ROOT

BUILD = ROOT / "build" / "clients" / "cuda-samples"
ARCH = "-gencode=arch=compute_80,code=compute_80"
SECONDS = 240

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


def build(samples: Path, name: str) -> Path:
    """The program of a sample; raises CalledProcessError if nvcc refuses it."""
    folder = samples / "Samples" / name
    program = BUILD / Path(name).name
    sources = sorted(str(path) for pattern in ("*.cu", "*.cpp") for path in folder.glob(pattern))
    newest = max((Path(path).stat().st_mtime for path in sources), default=0)
    if not program.exists() or program.stat().st_mtime < newest:
        program.parent.mkdir(parents=True, exist_ok=True)
        command = ["nvcc", "-cudart", "shared", ARCH, "-std=c++17", f"-I{samples / 'Common'}", f"-I{folder}", "-o", str(program)]
        subprocess.run([*command, *sources], check=True, capture_output=True, text=True)
    return program


def run(samples: Path, name: str, libraries: str) -> str:
    """What came of a sample, in a word or two."""
    try:
        program = build(samples, name)
    except subprocess.CalledProcessError as error:
        return "not built: " + (error.stderr.strip().splitlines() or ["?"])[0][:150]
    command = [str(program), *SAMPLES[name]]
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
    started = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=samples / "Samples" / name, env=environment, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"FAILED: more than {SECONDS} s"
    seconds = time.perf_counter() - started
    said = done.stderr.decode(errors="replace").strip().splitlines() or done.stdout.decode(errors="replace").strip().splitlines()
    if done.returncode == 0:
        return f"passed in {seconds:.1f} s"
    if done.returncode == 2:
        return "waived by itself"
    return f"FAILED ({done.returncode}): " + " / ".join(said[-2:])[:250]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--libraries", default="", help="the folder of our libraries")
    given = parser.parse_intermixed_args()
    libraries = (
        given.libraries or subprocess.check_output([sys.executable, "-m", "ptxemu", "cuda", "--print-path"], text=True).strip()
    )
    failed = 0
    for name in SAMPLES:
        if given.names and Path(name).name not in given.names:
            continue
        result = run(given.samples, name, libraries)
        failed += result.startswith("FAILED")
        print(f"{Path(name).name}: {result}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
