"""The Vega bundle is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.reports import vendor


def test_the_bundle_defines_the_embedding_function(tmp_path: Path) -> None:
    path = vendor.write_vega_bundle(tmp_path / "vendor")
    assert "window.vegaEmbed" in path.read_text()
    assert [p.name for p in path.parent.iterdir()] == ["vega-bundle.js"]


def test_a_failed_write_leaves_the_old_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "vega-bundle.js"
    old.write_text("old")

    def full(self: Path, *args: object, **kwargs: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        vendor.write_vega_bundle(tmp_path)
    monkeypatch.undo()
    assert old.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["vega-bundle.js"]
