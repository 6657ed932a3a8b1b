"""The first page starts to load what the others need, and survives what cannot be loaded."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest
from django.test import Client

from experiments.views import warm


def test_the_first_page_loads_what_the_next_one_needs(browser: Client) -> None:
    assert browser.get("/").status_code == 200
    warm.begin().join(120)
    assert not warm.begin().is_alive()
    assert {"scipy.stats", "vl_convert"} <= set(sys.modules)


@pytest.mark.parametrize("fault", [OSError("no pango"), ImportError("not installed")])
def test_what_cannot_be_loaded_does_not_stop_the_rest(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    asked: list[str] = []

    def load(name: str) -> Any:
        asked.append(name)
        raise fault

    monkeypatch.setattr(importlib, "import_module", load)
    warm._load()
    assert asked == list(warm.SLOW)
