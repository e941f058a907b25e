"""What a launch that failed may have lacked."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ptxemu.text.errors import Fault, LaunchTimeout

SHARED = "the kernel has dynamic shared memory, and the launch gives it none (--shared BYTES; shared= in Python and cases)"
COOPERATIVE = "blocks that wait for each other need a cooperative launch (--cooperative; cooperative= in Python and cases)"
WITHOUT_WORKSPACE = ("trap", "null pointer", "illegal address", "barrier misuse")
"""What becomes of the synchronization of a grid whose blocks are not all there."""


class Terms(Struct, frozen=True):
    """What a launch was given; ``may_wait``: it has several blocks, and they may wait for each other."""

    dynamic_shared: int
    cooperative: bool
    may_wait: bool


def advised(error: Fault | LaunchTimeout, terms: Terms, needs: Callable[[], tuple[bool, bool]]) -> Fault | LaunchTimeout:
    """The error, with what the launch may have lacked.

    ``needs`` tells whether the kernel has dynamic shared memory, and whether its blocks wait for each other as those of
    cooperative groups do.  It is asked where that would explain the error.
    """
    hint = _hint(error, terms, needs)
    if not hint:
        return error
    first, *others = str(error).splitlines()
    text = "\n".join([f"{first}; {hint}", *others])
    return Fault(text, error.details) if isinstance(error, Fault) else LaunchTimeout(text)


def _hint(error: Fault | LaunchTimeout, terms: Terms, needs: Callable[[], tuple[bool, bool]]) -> str:
    if isinstance(error, LaunchTimeout):
        return COOPERATIVE if terms.may_wait and not terms.cooperative else ""
    fault = error.details
    if fault.space == "shared" and not terms.dynamic_shared:
        return SHARED if needs()[0] else ""
    if fault.kind in WITHOUT_WORKSPACE and not terms.cooperative:
        return COOPERATIVE if needs()[1] else ""
    return ""
