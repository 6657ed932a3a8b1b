"""Which of several columns of speeds is the run's, and which column is called after the draft."""

from __future__ import annotations

import pytest

from specdebug.sglang.bench_titles import fields_of
from specdebug.sglang.benches import read_benches


def speeds(header: str, row: str) -> list[tuple[bool | None, float | None]]:
    rule = "|".join("---" for _ in header.split("|"))
    report = read_benches(f"| {header} |\n| {rule} |\n| {row} |\n")
    return [(run.is_baseline, run.output_tok_s) for run in report.runs]


@pytest.mark.parametrize(
    "header",
    [
        "goodput (tok/s) | throughput (tok/s)",
        "tok/s (p99) | tok/s (p50)",
        "tok/s_p99 | tok/s",
        "max tok/s | mean tok/s",
        "minimum tok/s | tok/s",
        "median tok/s | avg tok/s",
        "tok/s per GPU | tok/s",
        "tok/s/GPU | total tok/s",
        "per GPU (tok/s) | all 8 GPUs (tok/s)",
        "tok/s/user | output tok/s",
        "throughput (tok/s) | output throughput (tok/s)",
        "每卡吞吐 | 吞吐",
    ],
)
def test_the_figure_itself_wins_wherever_it_stands(header: str) -> None:
    first, second = header.split(" | ")
    assert speeds(f"run | {first} | {second}", "plain | 1 | 92") == [(True, 92.0)]
    assert speeds(f"run | {second} | {first}", "plain | 92 | 1") == [(True, 92.0)]


@pytest.mark.parametrize("title", ["goodput (tok/s)", "p99 tok/s", "tok/s per GPU", "tok/s/user"])
def test_a_share_or_an_extreme_alone_is_read(title: str) -> None:
    assert speeds(f"run | {title}", "plain | 92") == [(True, 92.0)]


def test_a_total_that_may_count_the_prompts_is_no_output() -> None:
    assert speeds("run | output tok/s/GPU | total tok/s", "plain | 11 | 92") == [(True, 11.0)]
    assert speeds("run | input tok/s | tok/s/GPU | total tok/s", "plain | 1 | 11 | 92") == [
        (True, 11.0)
    ]


@pytest.mark.parametrize(
    "header",
    [
        "baseline tok/s | draft tok/s",
        "baseline tok/s | with draft tok/s",
        "target only tok/s | target + draft tok/s",
        "baseline throughput | draft throughput",
        "baseline (tok/s) | with draft (tok/s)",
        "tok/s baseline | tok/s draft",
    ],
)
def test_beside_a_baseline_draft_is_the_run_with_it(header: str) -> None:
    assert speeds(f"batch | {header}", "1 | 92 | 70") == [(True, 92.0), (False, 70.0)]


def test_drafted_tokens_are_no_speed_of_a_run() -> None:
    assert fields_of(["run", "tok/s", "draft tok/s"])[2] is None
    assert fields_of(["baseline tok/s", "EAGLE3 tok/s", "draft tok/s"])[2] is None
    assert fields_of(["baseline tok/s", "drafted tok/s"])[1] is None
    assert fields_of(["baseline tok/s", "draft tokens"])[1] == "requested_draft_tokens"


def test_cells_with_units_make_columns_of_bare_sides_speeds() -> None:
    assert speeds("batch | baseline | draft", "1 | 92 tok/s | 70 tok/s") == [
        (True, 92.0),
        (False, 70.0),
    ]
    assert speeds("batch | baseline | draft", "1 | 92 ms | 70 ms") == []
    assert speeds("set | without | with", "mt | 92 tok/s | 70 tok/s") == [
        (None, 92.0),
        (None, 70.0),
    ]
    above = "EAGLE3 on one GPU\n\n| set | without | with |\n|---|---|---|\n"
    runs = read_benches(f"{above}| mt | 92 tok/s | 70 tok/s |\n").runs
    assert [(r.is_baseline, r.output_tok_s) for r in runs] == [(True, 92.0), (False, 70.0)]


BOX = "{name}:\n+------+-----+\n| {speed} | {figure} |\n{rest}+------+-----+\n\n"


@pytest.mark.parametrize("speed", ["output throughput (tok/s)", "output tok/s       ", "tok/s  "])
@pytest.mark.parametrize("bar", ["|", "\u2502"])
def test_boxes_are_read_however_far_their_labels_are_padded(speed: str, bar: str) -> None:
    text = BOX.format(name="plain.log", speed=speed, figure="88.00", rest="")
    rest = "| accept length                  |  1.70 |\n"
    text += BOX.format(name="eagle3.log", speed=speed, figure="61.00", rest=rest)
    plain, spec = read_benches(text.replace("|", bar)).runs
    assert (plain.is_baseline, plain.output_tok_s, plain.accept_len) == (True, 88.0, None)
    assert (spec.is_baseline, spec.output_tok_s, spec.accept_len) == (False, 61.0, 1.7)


def test_a_box_of_other_things_is_no_run() -> None:
    assert read_benches("| input tok/s | 88.00 |\n| colour | 3 |\n").runs == ()


PRINTED = (
    "============ Serving Benchmark Result ============\n"
    "Successful requests:                     64\n"
    "Total generated tokens:                  64000\n"
    "Output token throughput (tok/s):         96.40\n"
    "==================================================\n"
)


def test_the_rows_of_a_printed_table_are_no_columns() -> None:
    assert read_benches(PRINTED).remarks == ()
    table = "\n| run | tok/s | quux |\n|---|---|---|\n| plain | 90 | 3 |\n"
    assert read_benches(PRINTED + table).remarks == ("column 'quux' is not understood",)
