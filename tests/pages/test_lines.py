"""Windows of lines out of files of any size."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.views import lines


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_text("".join(f"line {i}\n" for i in range(1, 3001)))
    return path


def test_a_window_holds_the_line_that_was_asked_for(log: Path) -> None:
    found = lines.window(log, 1500)
    assert "line 1500" in [row.text for row in found.lines if row.number == 1500]
    assert len(found.lines) == lines.WINDOW
    assert found.before is not None
    assert found.after is not None


def test_following_earlier_and_later_reaches_both_ends_without_a_gap(log: Path) -> None:
    for direction, end in (("before", 1), ("after", 3000)):
        seen: set[int] = set()
        at: int | None = 1500
        while at is not None:
            found = lines.window(log, at)
            numbers = {row.number for row in found.lines if row.number is not None}
            assert not seen or seen & numbers or min(numbers) == max(seen) + 1
            seen |= numbers
            at = getattr(found, direction)
        assert end in seen


def test_the_ends_offer_nothing_beyond(log: Path) -> None:
    assert lines.window(log, 1).before is None
    assert lines.window(log, 3000).after is None
    assert lines.window(log, 10**9).lines == ()


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed_files_open(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "packed"
    path.write_bytes(pack(b"one\ntwo\n"))
    assert [row.text for row in lines.window(path).lines] == ["one", "two"]


def test_a_broken_packed_file_is_an_error_and_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(b"one\n" * 1000)[:30])
    with pytest.raises((OSError, EOFError)):
        lines.window(path)


def test_bytes_that_are_no_text_and_endless_lines_stay_short(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\xfc\xfe\x00bad\n" + b"y" * 3_000_000 + b"\nlast\r\nbar 1\rbar 2\n")
    shown = lines.window(path).lines
    assert "bad" in shown[0].text
    assert all(len(row.text) <= lines.LONGEST + 2 for row in shown)
    assert [row.text for row in shown[-2:]] == ["last", "bar 2"]


def test_a_long_line_counts_as_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"first\n" + b"y" * (3 * lines.PIECE) + b"\nthird\n")
    assert [row.number for row in lines.window(path).lines] == [1, 2, 3]
    path.write_bytes(b"".join(b"%d\n" % i for i in range(1, 400_001)))
    shown = lines.window(path, 399_990).lines
    assert all(row.text == str(row.number) for row in shown)


def test_utf_16_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes("one\r\nzwölf\r\n".encode("utf-16"))
    assert [row.text for row in lines.window(path).lines] == ["one", "zwölf"]


def test_a_tail_is_the_end_and_numbers_only_what_it_has_counted(log: Path) -> None:
    short = lines.tail(log, 3)
    assert [(row.number, row.text) for row in short] == [
        (2998, "line 2998"),
        (2999, "line 2999"),
        (3000, "line 3000"),
    ]
    log.write_bytes(b"x" * lines.TAIL_BYTES + b"\nlast\n")
    assert [(row.number, row.text) for row in lines.tail(log, 3)] == [(None, "last")]


def test_a_tail_of_nothing_is_empty(tmp_path: Path) -> None:
    assert lines.tail(tmp_path / "absent") == ()
    (tmp_path / "empty").touch()
    assert lines.tail(tmp_path / "empty") == ()


def test_a_plan_cannot_lead_out_of_the_runs_folder(settings: object, tmp_path: Path) -> None:
    from experiments.models import Run

    settings.RUN_DIR = tmp_path  # type: ignore[attr-defined]
    for name in ("../../etc", "/etc", "..", ""):
        path = lines.live_log(Run(plan={"run": name}))
        assert path.resolve().parent.parent == tmp_path.resolve(), name
