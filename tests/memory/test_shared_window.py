"""Where the window of shared memory is among generic addresses."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu

GENERIC = """
.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 given[];
.visible .entry k(.param .u64 out)
{
  .reg .b64 %out, %o, %g; .reg .b32 %c;
  .shared .align 16 .b8 own[48];
  ld.param.u64 %out, [out]; mov.u32 %c, %ctaid.x; mul.wide.u32 %o, %c, 16; add.u64 %out, %out, %o;
  cvta.shared.u64 %g, own; st.global.u64 [%out], %g;
  cvta.shared.u64 %g, given; st.global.u64 [%out+8], %g;
  ret;
}
"""


@pytest.mark.parametrize(("engine", "cluster"), [("jit", 1), ("jit", 4), ("interpreter", 1)])
@pytest.mark.parametrize("dynamic", [0, 1000, 40000])
def test_generic_addresses_of_shared_memory_end_as_others_do(dynamic: int, engine: str, cluster: int) -> None:
    """Programs find the place of a swizzled line by the lowest ten bits of either (CUTLASS's tutorial of sm_100)."""
    out = np.ones((8, 2), np.uint64)
    module = ptxemu.loads(GENERIC, device=ptxemu.Device(engine=engine))
    module["k"][8, 32](out, shared=dynamic, cluster=cluster if cluster > 1 else None)
    assert (out % 1024 == [0, 48]).all()
