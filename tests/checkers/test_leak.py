"""The checker ``leak``: blocks that kernels have allocated and nobody has freed."""

from __future__ import annotations

import ptxemu
from tests.checkers.planted import messages, program

DECLARED = ".extern .func (.param .b64 r) malloc (.param .b64 n); .extern .func free (.param .b64 p);\n"
# thread i takes 4 * i + 8 bytes and leaves their address in x[i]; threads with i < y free x[i]
TAKE = (
    "add.u64 %rd4, %rd2, 8; { .param .b64 n; .param .b64 r; st.param.b64 [n], %rd4; call (r), malloc, (n);"
    " ld.param.b64 %rd5, [r]; }; shl.b64 %rd6, %rd2, 1; add.u64 %rd6, %rd1, %rd6; st.global.u64 [%rd6], %rd5"
)
GIVE = (
    "cvt.u32.u64 %r3, %rd3; setp.ge.u32 %p1, %r1, %r3; @%p1 exit; shl.b64 %rd6, %rd2, 1; add.u64 %rd6, %rd1, %rd6;"
    " ld.global.u64 %rd5, [%rd6]; { .param .b64 p; st.param.b64 [p], %rd5; call free, (p); }"
)


def test_what_is_left_is_found_until_it_is_freed() -> None:
    with ptxemu.Device(memory="32 MiB", check="leak") as device:
        assert device.checks is not None
        x = device.empty(40, "u64")
        take, give = (ptxemu.loads(program(body, DECLARED), device=device, opt=0)["k"] for body in (TAKE, GIVE))
        take[1, 40](x, 0)
        sizes = [4 * i + 8 for i in range(40)]
        line = "call (r), malloc, (n);"
        assert messages(device.checks.findings) == [
            f"{sum(sizes):,} bytes in 40 blocks of `malloc` are never freed | {line} | 0.0 40x"
        ]
        give[1, 64](x, 39)
        assert messages(device.checks.findings) == [f"{sizes[-1]} bytes in 1 block of `malloc` is never freed | {line} | 0.39 1x"]
        assert device.checks.summary == "checked leak in 2 launches: 1 finding"
        device.checks.clear()
        assert device.checks.findings == []
        take[1, 40](x, 0)
        give[1, 64](x, 40)
        assert device.checks.findings == []
