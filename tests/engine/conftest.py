from collections.abc import Iterator

import fakes
import pytest

from torchmemlint.engine import one_file


@pytest.fixture(autouse=True)
def fake_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    fakes.install(monkeypatch)
    yield
    one_file._catalogue.cache_clear()
