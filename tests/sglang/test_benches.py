"""Benchmark output in every shape it was seen in."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdebug.sglang.benches import BenchReport, read_benches
from specdebug.sglang.pasted import as_text
from specdebug.sglang.run_names import is_baseline
from specdebug.sglang.table_cells import value_of

DATA = Path(__file__).parents[1] / "data" / "sglang"


def test_real_json_lines_are_runs_with_their_server() -> None:
    first, second = read_benches((DATA / "bench_steps1.jsonl").read_bytes()).runs
    assert (first.line, second.line) == (1, 2)
    assert second.output_tok_s == pytest.approx(30.557, abs=1e-3)
    assert second.accept_len == 1.68
    assert (second.num_steps, second.topk, second.draft_tokens) == (1, 1, 2)
    assert (second.dataset, second.max_concurrency, second.is_baseline) == ("random-ids", 1, False)
    assert second.server_info is not None
    assert str(second.server_info.release) == "0.5.10.post1"
    assert second.extra["request_rate"] == float("inf")


def test_a_run_without_speculation_is_a_baseline_without_accept_length() -> None:
    (run,) = read_benches((DATA / "bench_plain.jsonl").read_bytes()).runs
    assert (run.is_baseline, run.accept_len) == (True, None)


def test_a_real_printed_table_gives_the_same_figures() -> None:
    (run,) = read_benches((DATA / "bench_steps1.txt").read_bytes()).runs
    assert run.kind == "bench-serving-table"
    assert (run.output_tok_s, run.accept_len, run.concurrency) == (30.56, 1.68, 1.0)
    assert (run.completed, run.max_concurrency, run.output_tokens) == (8, 1, 256)
    assert (run.mean_ttft_ms, run.mean_tpot_ms, run.mean_e2e_ms) == (51.92, 32.0, 1043.96)
    assert (run.dataset, run.ignore_eos) == ("random-ids", True)
    assert run.extra["max_itl"] == 155.86


def test_vllms_table_gives_acceptance_by_position() -> None:
    text = """\
============ Serving Benchmark Result ============
Successful requests:                     80
Maximum request concurrency:             4
Output token throughput (tok/s):         412.50
Mean TTFT (ms):                          31.20
---------------Speculative Decoding---------------
Acceptance rate (%):                     42.00
Acceptance length:                       2.26
Drafts:                                  900
Draft tokens:                            2700
Accepted tokens:                         1134
Per-position acceptance (%):
  Position 0:                            68.10
  Position 1:                            38.00
  Position 2:                            19.90
==================================================
"""
    (run,) = read_benches(text).runs
    assert (run.kind, run.accept_len, run.accept_rate) == ("vllm-bench", 2.26, 0.42)
    assert run.max_concurrency == 4
    assert run.extra["per_position"] == [68.1, 38.0, 19.9]
    assert run.extra["drafts"] == 900


def test_a_markdown_table_gives_rows_and_what_is_really_in_force() -> None:
    text = """\
Our numbers:

| run | num_steps | topk | num_draft_tokens asked | tok/s | accept len |
|---|---|---|---|---|---|
| no speculation | - | - | - | 90 | - |
| R1 | 1 | 1 | 16 | **56.8** | ~1.6 |
| R2 | 15 | 1 | 16 | 46.7 | 1.9 |
"""
    plain, first, second = read_benches(text).runs
    assert (plain.label, plain.output_tok_s, plain.is_baseline) == ("no speculation", 90.0, True)
    assert (first.line, first.num_steps, first.requested_draft_tokens) == (6, 1, 16)
    assert (first.draft_tokens, first.accept_len, first.output_tok_s) == (2, 1.6, 56.8)
    assert (second.draft_tokens, second.is_baseline) == (16, False)


@pytest.mark.parametrize(
    "text",
    [
        "config\ttok/s\taccept len\nbaseline\t90\t-\neagle3\t56.8\t1.6\n",
        "config,tok/s,accept len\nbaseline,90,\neagle3,56.8,1.6\n",
        "config      tok/s   accept len\nbaseline    90      -\neagle3      56.8    1.6\n",
        "tok/s | accept len | config\n90 | - | baseline\n56.8 | 1.6 | eagle3\n",
    ],
)
def test_tables_with_other_separators_are_read(text: str) -> None:
    plain, spec = read_benches(text).runs
    assert (plain.output_tok_s, plain.is_baseline) == (90.0, True)
    assert (spec.output_tok_s, spec.accept_len, spec.label) == (56.8, 1.6, "eagle3")


def test_bench_speculative_rows_are_corrected_to_what_ran() -> None:
    text = (
        '{"batch_size": 1, "steps": 0, "topk": 0, "num_draft_tokens": 0, "acc_length": 1.0, '
        '"step_time": 0.011, "speed": 90.0, "completion_tokens": 512}\n'
        '{"batch_size": 1, "steps": 1, "topk": 1, "num_draft_tokens": 16, "acc_length": 1.6, '
        '"step_time": 0.02817, "speed": 56.8, "completion_tokens": 512}\n'
    )
    plain, chain = read_benches(text).runs
    assert (plain.is_baseline, plain.accept_len, plain.draft_tokens) == (True, None, None)
    assert (chain.requested_draft_tokens, chain.draft_tokens) == (16, 2)
    assert chain.step_ms == pytest.approx(28.17)


def test_bench_one_batch_says_minus_one_for_no_speculation() -> None:
    text = (
        '{"run_name": "a", "batch_size": 4, "latency": 1.5, "output_throughput": 300.5, '
        '"overall_throughput": 900, "last_ttft": 0.25, "acc_length": -1}'
    )
    (run,) = read_benches(text).runs
    assert (run.kind, run.label, run.batch_size) == ("bench-one-batch", "a", 4)
    assert (run.accept_len, run.is_baseline, run.mean_ttft_ms) == (None, True, 250.0)


def test_a_clients_command_tells_its_prompts() -> None:
    text = (
        "python3 -m sglang.bench_serving --dataset-name random-ids --num-prompts 128 \\\n"
        "  --max-concurrency 16\n"
    )
    (run,) = read_benches(text).runs
    assert run.kind == "bench-serving-command"
    assert (run.dataset, run.max_concurrency, run.ignore_eos) == ("random-ids", 16, True)
    assert run.extra["--num-prompts"] == "128"
    (kept,) = read_benches("python -m sglang.bench_serving --disable-ignore-eos").runs
    assert (kept.ignore_eos, kept.dataset) == (False, "sharegpt")


def test_a_clients_report_in_words_is_read() -> None:
    text = (
        "stream client, one request at a time, temperature 0\nrequests            6\n"
        "events per request  85\noutput tokens/s     8.10\n"
    )
    (run,) = read_benches(text).runs
    assert run.kind == "client-report"
    assert (run.output_tok_s, run.events_per_request, run.completed) == (8.1, 85.0, 6)
    assert run.max_concurrency == 1


def test_sentences_with_figures_are_runs_of_their_own() -> None:
    text = "baseline: 90 tok/s\nwith eagle3: 56.8 tok/s, accept length 1.6\n"
    plain, spec = read_benches(text).runs
    assert (plain.output_tok_s, plain.is_baseline) == (90.0, True)
    assert (spec.output_tok_s, spec.accept_len) == (56.8, 1.6)


def test_log_lines_are_no_benchmark() -> None:
    line = (
        "[2026-01-01 10:00:00] Decode batch, #running-req: 1, accept len: 1.60, "
        "gen throughput (token/s): 56.80, #queue-req: 0"
    )
    assert read_benches(line).runs == ()
    assert read_benches("nothing to see").runs == ()


def test_a_broken_line_among_json_lines_is_named() -> None:
    good = '{"output_throughput": 1.5, "duration": 2, "completed": 3}'
    report = read_benches(f"{good}\n{good[:30]}\n{good}\n")
    assert len(report.runs) == 2
    assert report.problems[0][0] == 2


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1,234.5", 1234.5),
        ("1,234", 1234.0),
        ("12,345,678", 12345678.0),
        ("56,8", 56.8),
        ("1,60", 1.6),
        ("1.234,5", 1234.5),
        ("0,123", 0.123),
        ("1.2.3", None),
        ("1e-2", 0.01),
        ("~1.6", 1.6),
        ("56.8 tok/s", 56.8),
        ("-", None),
        ("R1", None),
        ("", None),
    ],
)
def test_cells_are_numbers_or_not(cell: str, value: float | None) -> None:
    assert value_of(cell) == value


def test_labels_that_name_a_baseline() -> None:
    for label in ("no speculation", "Baseline", "without spec", "vanilla", "spec off"):
        assert is_baseline(label), label
    for label in ("EAGLE-3", "R1", "steps 3", "spec on"):
        assert not is_baseline(label), label


def read_within(content: str | bytes) -> BenchReport:
    """What is read of any content: rows on lines that there are, in order, with finite figures."""
    found = read_benches(content)
    count = len(as_text(content).split("\n"))
    places = [run.line for run in found.runs]
    assert places == sorted(places)
    assert all(1 <= line <= count for line in places)
    assert all(1 <= line <= count and why for line, why in found.problems)
    for run in found.runs:
        for figure in (run.output_tok_s, run.accept_len, run.step_ms):
            assert figure is None or math.isfinite(figure)
    return found


@given(st.one_of(st.text(max_size=400), st.binary(max_size=400)))
@settings(deadline=None)
def test_any_content_is_read_to_rows_of_its_own_lines(content: str | bytes) -> None:
    read_within(content)


@given(st.text(alphabet="|-:. \n\t,tok/s1accept len", max_size=300))
@settings(deadline=None)
def test_any_table_is_read_and_a_whole_row_above_it_is_not_lost(text: str) -> None:
    found = read_within("tok/s | accept len\n56.8 | 1.6\n\n" + text)
    assert (found.runs[0].output_tok_s, found.runs[0].accept_len) == (56.8, 1.6)


@pytest.mark.parametrize(
    "text",
    [
        "With the draft 56.8 tok/s, while the baseline reaches 90 tok/s. accept len: 1.6",
        "Baseline: 90 tok/s, EAGLE3: 56.8 tok/s (accept length 1.6)",
        "from 90 tokens/s (no speculation) to 56.8 tokens/s, acceptance length 1.60",
    ],
)
def test_one_sentence_may_hold_both_speeds(text: str) -> None:
    plain, drafted = sorted(read_benches(text).runs, key=lambda run: not run.is_baseline)
    assert (plain.output_tok_s, plain.accept_len, plain.is_baseline) == (90.0, None, True)
    assert (drafted.output_tok_s, drafted.accept_len, drafted.is_baseline) == (56.8, 1.6, False)


@pytest.mark.parametrize(
    "text", ["output 45 tok/s, total 90 tok/s", "baseline 40 tok/s, baseline again 41 tok/s"]
)
def test_two_speeds_of_which_none_or_both_are_the_baselines_are_not_set_apart(text: str) -> None:
    assert len(read_benches(text).runs) == 1


@pytest.mark.parametrize("title", ["tok_s", "tok/s", "tokens_per_second", "output tok/s", "tps"])
def test_a_column_of_speeds_has_many_titles(title: str) -> None:
    plain, drafted = read_benches(f"run,steps,{title},accept_len\nbaseline,,90,\nA,3,70,2.1\n").runs
    assert (plain.output_tok_s, plain.is_baseline) == (90.0, True)
    assert (drafted.output_tok_s, drafted.num_steps, drafted.accept_len) == (70.0, 3, 2.1)


@pytest.mark.parametrize(
    ("titles", "cells", "speed"),
    [
        ("input throughput (tok/s) | output throughput (tok/s)", "9120 | 105", 105.0),
        ("total throughput (tok/s) | output throughput (tok/s)", "700 | 90", 90.0),
        ("total tok/s | accept len", "90 | 2.0", 90.0),
    ],
)
def test_the_speed_of_a_row_is_that_of_its_output(titles: str, cells: str, speed: float) -> None:
    (run,) = read_benches(f"| {titles} |\n|---|---|\n| {cells} |\n").runs
    assert run.output_tok_s == speed


def test_a_line_on_the_input_is_no_output_speed() -> None:
    (run,) = read_benches("input throughput: 9120.0 tok/s\noutput throughput: 105.0 tok/s\n").runs
    assert run.output_tok_s == 105.0


def test_vllms_json_holds_acceptance_by_position() -> None:
    row = '{"output_throughput": 400.0, "duration": 50.0, "completed": 100, '
    row += '"spec_decode_acceptance_length": 1.18, "spec_decode_num_drafts": 900, '
    (run,) = read_benches(row + '"spec_decode_per_position_acceptance_rates": [0.14, 0.04]}').runs
    assert (run.accept_len, run.extra["per_position"]) == (1.18, [0.14, 0.04])
    (run,) = read_benches(row + '"spec_decode_per_position_acceptance_rates": ["x"]}').runs
    assert "per_position" not in run.extra


def test_a_sentence_gives_the_drafting_run_its_arguments() -> None:
    asked = "num_steps=1, topk=1, draft tokens 16"
    text = f"Without speculation 90 tok/s, with EAGLE3 ({asked}) 56.8 tok/s"
    plain, drafting = read_benches(text).runs
    assert (plain.output_tok_s, plain.num_steps) == (90.0, None)
    assert drafting.output_tok_s == 56.8
    assert (drafting.num_steps, drafting.topk, drafting.requested_draft_tokens) == (1, 1, 16)


def test_blank_cells_of_a_table_of_fixed_width_stay_blank() -> None:
    text = (
        "config        accept length   output tok/s\n"
        "baseline                      90.0\n"
        "eagle3        1.60            56.8\n"
    )
    rows = read_benches(text).runs
    assert [(r.label, r.output_tok_s, r.accept_len) for r in rows] == [
        ("baseline", 90.0, None),
        ("eagle3", 56.8, 1.6),
    ]


@pytest.mark.parametrize("title", ["AL", "**AL**", "tau", "acc_len", "ms/step", "RPS", "tps"])
def test_a_table_may_have_one_figure_under_any_of_its_names(title: str) -> None:
    runs = read_benches(f"| run | {title} |\n|---|---|\n| first | 2.5 |\n").runs
    assert [(run.label, run.kind) for run in runs] == [("first", "table")]
    assert not read_benches("| run | weights |\n|---|---|\n| first | 2.5 |\n").runs
