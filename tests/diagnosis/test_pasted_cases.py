"""The files of a case in one paste, fenced or as a quoted reply, get the answer they got alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specdebug.diagnosis.case import Input, build_case
from specdebug.diagnosis.diagnose import diagnose

FOLDER = Path(__file__).parents[1] / "data" / "cases"


def texts(folder: Path) -> dict[str, str] | None:
    """Name -> text of the inputs; None for packed ones, and for two logs, which are two starts."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.name != "expect.json":
            try:
                found[path.name] = path.read_bytes().decode()
            except UnicodeDecodeError:
                return None
    logs = sum("Load weight begin" in text for text in found.values())
    return found if logs < 2 and not any("\x00" in text for text in found.values()) else None


# Every fifth: all of them were tried, and take a quarter of a minute.
CASES = [folder for folder in sorted(FOLDER.iterdir())[::5] if folder.is_dir() and texts(folder)]


def judge(folder: Path, paste: str) -> None:
    expect = json.loads((folder / "expect.json").read_text())
    codes = {f.code for f in diagnose(build_case([Input("paste", paste.encode())])).findings}
    assert set(expect["must"]) - codes == set()
    assert codes & set(expect["must_not"]) == set()


def test_there_are_many() -> None:
    assert len(CASES) > 40


@pytest.mark.parametrize("folder", CASES, ids=lambda p: p.name)
def test_fences_and_names_around_the_files_change_nothing(folder: Path) -> None:
    files = (texts(folder) or {}).items()
    judge(folder, "\n\n".join(f"{name}:\n```\n{text.rstrip()}\n```" for name, text in files))


@pytest.mark.parametrize("folder", CASES, ids=lambda p: p.name)
def test_a_quoted_reply_is_read_like_what_it_quotes(folder: Path) -> None:
    files = (texts(folder) or {}).items()
    lines = [
        line for name, text in files for line in (f"see {name}:", *text.rstrip().split("\n"), "")
    ]
    judge(folder, "I wrote:\n" + "\n".join(f"> {line}" for line in lines) + "\n\nAny idea?\n")
