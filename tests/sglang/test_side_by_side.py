"""Two runs in a row of a table: whose each column is, and what is said where nothing tells."""

from __future__ import annotations

import pytest

from specdebug.sglang.benches import BenchReport, read_benches
from specdebug.sglang.side_by_side import side_by_side

ROWS = "| 1 | 100 | 180 | 2.5 |\n| 64 | 3000 | 2200 | 2.4 |\n"


def table(header: str, rows: str = ROWS, above: str = "") -> BenchReport:
    rule = "|---" * (header.count("|") + 1) + "|"
    return read_benches(f"{above}| {header} |\n{rule}\n{rows}")


def told(report: BenchReport) -> list[tuple[object, ...]]:
    return [(r.is_baseline, r.output_tok_s, r.accept_len) for r in report.runs]


READ = [(True, 100.0, None), (False, 180.0, 2.5), (True, 3000.0, None), (False, 2200.0, 2.4)]


@pytest.mark.parametrize(
    "header",
    [
        "batch | output tok/s without MTP | output tok/s with MTP | accept length",
        "batch | without MTP (tok/s) | with MTP (tok/s) | accept length",
        "batch | throughput w/o MTP | throughput w/ MTP | accept length",
        "batch | Throughput (no MTP, tok/s) | Throughput (MTP, tok/s) | AL",
        "batch | tok/s (MTP off) | tok/s (MTP on) | accept length",
        "batch | plain tok/s | EAGLE3 tok/s | accept length",
        "batch | tok/s before enabling MTP | tok/s after enabling MTP | accept length",
        "batch | baseline tok/s | ours tok/s | accept length",
        "batch | TP8 tok/s | TP8 + EAGLE3 tok/s | accept length",
        "batch | base tok/s | EAGLE3 tok/s | accept length",
        "batch | total tok/s no spec | total tok/s spec | accept length",
        "concurrency | TPS no draft | TPS draft | acc len",
        "并发 | 基线吞吐 | 投机吞吐 | 接受长度",
        "batch | 吞吐 (无 MTP) | 吞吐 (MTP) | 接受长度",
    ],
)
def test_the_accept_length_is_the_drafting_columns(header: str) -> None:
    report = table(header)
    assert told(report) == READ
    assert report.remarks == ()


def test_the_order_of_the_columns_tells_nothing() -> None:
    report = table("batch | tok/s with MTP | tok/s without MTP | accept length")
    assert told(report)[:2] == [(False, 100.0, 2.5), (True, 180.0, None)]


@pytest.mark.parametrize(
    "header",
    [
        "batch | server A tok/s | server B tok/s | accept length",
        "batch | tok/s before | tok/s after | accept length",
        "batch | tok/s off | tok/s on | accept length",
        "batch | throughput without | throughput with | accept length",
    ],
)
def test_speeds_that_nobody_tells_apart_get_no_accept_length(header: str) -> None:
    report = table(header)
    assert all(r.undecided and r.is_baseline is None and r.accept_len is None for r in report.runs)
    assert len(report.runs) == 4
    assert any("cannot be told apart" in said for said in report.remarks)


def test_off_and_on_are_told_by_the_words_above() -> None:
    header = "batch | tok/s off | tok/s on | accept length"
    assert told(table(header, above="MTP off vs on:\n")) == READ
    assert not any(r.is_baseline for r in table(header, above="CUDA graphs off vs on:\n").runs)


def test_an_accept_length_of_one_of_two_drafts_is_attached_to_the_one_it_names() -> None:
    one = table(
        "batch | baseline tok/s | EAGLE tok/s | EAGLE3 tok/s | accept len",
        "| 1 | 100 | 150 | 180 | 2.5 |\n",
    )
    assert told(one) == [(True, 100.0, None), (False, 150.0, None), (False, 180.0, None)]
    assert one.remarks == ("'accept len' is attached to no run: nothing says whose it is",)
    both = table(
        "bs | baseline tok/s | EAGLE tok/s | EAGLE3 tok/s | EAGLE accept len | EAGLE3 accept len",
        "| 1 | 100 | 150 | 180 | 2.0 | 2.5 |\n",
    )
    assert told(both) == [(True, 100.0, None), (False, 150.0, 2.0), (False, 180.0, 2.5)]
    assert both.remarks == ()


def test_a_step_time_is_the_drafts_and_a_time_to_first_token_nobodys() -> None:
    plain, spec = table(
        "batch | baseline tok/s | EAGLE3 tok/s | accept len | step ms | TTFT",
        "| 1 | 100 | 150 | 2.5 | 16 | 200 |\n",
    ).runs
    assert (plain.step_ms, spec.step_ms) == (None, 16.0)
    assert (plain.mean_ttft_ms, spec.mean_ttft_ms) == (None, None)


def test_times_per_token_stand_side_by_side_too() -> None:
    plain, spec = table(
        "batch | TPOT without MTP (ms) | TPOT with MTP (ms) | accept length",
        "| 1 | 10 | 6 | 2.5 |\n",
    ).runs
    assert (plain.is_baseline, plain.mean_tpot_ms, plain.accept_len) == (True, 10.0, None)
    assert (spec.is_baseline, spec.mean_tpot_ms, spec.accept_len) == (False, 6.0, 2.5)


def test_columns_named_by_sides_alone_have_the_unit_that_stands_above() -> None:
    header = "batch | w/o MTP | w/ MTP | accept length"
    assert told(table(header, above="Output tok/s:\n\n")) == READ
    report = table(header)
    assert [r.output_tok_s for r in report.runs] == [None, None]  # of what unit, nobody knows
    assert report.remarks == (
        "column 'w/o MTP' is not understood",
        "column 'w/ MTP' is not understood",
    )


def test_rows_that_are_figures_are_not_read_as_speeds() -> None:
    report = table(
        " | MTP off | MTP on",
        "| output tok/s | 90 | 56 |\n| accept length | - | 1.6 |\n",
        above="Throughput comparison:\n",
    )
    assert told(report) == [(True, 90.0, None), (False, 56.0, 1.6)]


def test_a_row_is_one_run_where_its_columns_are_shares_or_it_names_its_side() -> None:
    assert side_by_side(["bs", "output tok/s", "tok/s per GPU", "accept length"]) is None
    assert side_by_side(["run", "tok/s", "accept length"]) is None
    report = table(
        "config | tok/s bs1 | tok/s bs32 | accept length",
        "| baseline | 90 | 1900 | - |\n| EAGLE3 | 57 | 1500 | 1.6 |\n",
    )
    assert told(report) == [(True, 90.0, None), (False, 57.0, 1.6)]
