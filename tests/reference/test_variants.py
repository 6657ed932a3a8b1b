"""Draft folders with another config and the same weights."""

import json
from pathlib import Path

import pytest

from specdebug.reference import variants
from specdebug.reference.capture import EAGLE_KEY, LAYER_IDS_KEY


def ids(folder: Path) -> list[int]:
    found: list[int] = json.loads((folder / "config.json").read_text())[EAGLE_KEY][LAYER_IDS_KEY]
    return found


def test_the_shipped_draft_has_the_right_ids() -> None:
    assert ids(variants.DRAFT) == list(variants.RIGHT_IDS)


def test_the_wrong_layers_change_the_config_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "wrong"
    assert variants.main(["--wrong-layers", str(folder)]) == 0
    assert ids(folder) == [1, 5, 9]
    for file in variants.DRAFT.iterdir():
        if file.name != "config.json":
            assert (folder / file.name).read_bytes() == file.read_bytes()
    ours = json.loads((folder / "config.json").read_text())
    shipped = json.loads((variants.DRAFT / "config.json").read_text())
    del ours[EAGLE_KEY], shipped[EAGLE_KEY]
    assert ours == shipped


def test_writing_twice_works_and_leaves_the_shipped_draft_alone(tmp_path: Path) -> None:
    before = (variants.DRAFT / "config.json").read_bytes()
    for _ in range(2):
        variants.write_draft(tmp_path / "d", [1, 5, 9])
    assert (variants.DRAFT / "config.json").read_bytes() == before


def test_own_layers_and_default_layers_can_be_written(tmp_path: Path) -> None:
    assert variants.main(["--layers", str(tmp_path / "own"), "-1", "2", "8"]) == 0
    assert ids(tmp_path / "own") == [-1, 2, 8]
    assert variants.main(["--default-layers", str(tmp_path / "none")]) == 0
    assert EAGLE_KEY not in json.loads((tmp_path / "none/config.json").read_text())


def test_ids_that_are_no_numbers_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        variants.main(["--layers", "somewhere", "one"])
    assert "whole numbers" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert variants.main(["--wrong-layers", str(tmp_path / "file" / "below")]) == 1
    assert str(tmp_path / "file") in capsys.readouterr().err
