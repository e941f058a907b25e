"""The interpreter on what compilers have made: the launches of the corpus."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ptxemu
from tests.kernels import test_corpus
from tests.memory import test_corpus_atomics
from tests.surfaces import test_corpus_surfaces

pytestmark = [pytest.mark.filterwarnings("error::ptxemu.DtypeWarning"), pytest.mark.sampled(3)]

for module in (test_corpus, test_corpus_atomics, test_corpus_surfaces):
    globals().update({name: item for name, item in vars(module).items() if name.startswith("test_")})


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxemu.default_device(), "engine", "interpreter")


@pytest.fixture(scope="module")
def device() -> Iterator[ptxemu.Device]:
    with ptxemu.Device(memory="256 MiB", engine="interpreter") as made:
        yield made
