"""A program for test_cuda_tiers.py: launches a kernel, puts other code for it into the cache, as a tier's, and launches again.

Prints what both launches store: 1 is the kernel's own, 2 what the other code stores.
"""

import os
import sys
import time

import numpy as np

from ptxemu.cache import Cache
from ptxemu.device.entry import KERNEL
from ptxemu.driver.program import Program, Settings
from ptxemu.text.source import SourceFile
from tests.support.driver_api import call, context, function, launch, load, to_device, to_host

BLOCK = (32, 1, 1)
TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{{
  .reg .b64 %d0; .reg .b32 %r0; .reg .f64 %f<3>;
  ld.param.u64 %d0, [p];
  mov.f64 %f1, 0d3FF0000000000000;
  {divisions}
  cvt.rzi.u32.f64 %r0, %f1; add.u32 %r0, %r0, {more};
  st.global.u32 [%d0], %r0;
  ret;
}}
"""
LOOKS = 0.2
"""Seconds in which the library looks for better code, at least once."""


def program(divisions: int, more: int) -> Program:
    lines = ["div.rn.f64 %f1, %f1, %f1;"] * divisions
    text = TEXT.format(divisions="\n".join(lines), more=more)
    return Program(SourceFile("<module>", text), Settings(), Cache(os.environ["PTXEMU_CACHE"]))


def launched(kernel: int) -> int:
    word = to_device(np.zeros(1, "u4"))
    launch(kernel, (1, 1, 1), BLOCK, word)
    call("cuCtxSynchronize")
    return int(to_host(word, 1, "u4")[0])


def plant(tier: str, own: Program) -> None:
    assert own.is_cached("k", BLOCK)
    own._cache.put(own._key("k", BLOCK, tier), KERNEL, program(0, 1).code("k", BLOCK).body)


with context():
    own = program(1000, 0)
    kernel = function(load(own.source.text), "k")
    first = launched(kernel)
    plant(sys.argv[1], own)
    time.sleep(LOOKS)
    if sys.argv[2:] == ["reload"]:
        kernel = function(load(own.source.text), "k")
    print(first, launched(kernel))
