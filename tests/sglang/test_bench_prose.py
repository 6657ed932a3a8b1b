"""Figures told in words: names of runs, what they carry, and acceptance by position."""

from __future__ import annotations

import pytest

from specdebug.sglang.bench_prose import client_report
from specdebug.sglang.benches import BenchRun, read_benches
from specdebug.sglang.run_names import told_by_label


def runs(text: str) -> tuple[BenchRun, ...]:
    return read_benches(text).runs


def test_a_line_of_prose_names_its_run_with_all_its_settings() -> None:
    plain, one, many = runs(
        "baseline 90 tok/s\n"
        "R1 steps=1 topk=1 num_draft_tokens=16: 56.8 tok/s, accept length 1.6\n"
        "R2 steps=15: 46.7 tok/s, accept length 1.89\n"
    )
    assert (plain.is_baseline, plain.output_tok_s) == (True, 90.0)
    assert one.label == "R1 steps=1 topk=1 num_draft_tokens=16"
    assert (one.num_steps, one.topk, one.requested_draft_tokens, one.draft_tokens) == (1, 1, 16, 2)
    assert (many.num_steps, many.accept_len, many.is_baseline) == (15, 1.89, False)


def test_a_quoted_reply_keeps_what_stands_in_brackets() -> None:
    plain, draft = runs(
        "> we tried it on two GPUs\n"
        "> without spec: 61 tok/s\n"
        "> with spec (num_steps=3, topk=1, draft tokens=4): 44 tok/s, accept len 1.62\n"
    )
    assert plain.is_baseline
    assert (draft.num_steps, draft.topk, draft.draft_tokens) == (3, 1, 4)
    assert draft.label == "with spec (num_steps=3, topk=1, draft tokens=4)"


def test_the_words_after_a_speed_name_the_run_where_none_stand_before() -> None:
    (run,) = runs("56.8 tok/s with EAGLE3, 3 steps\n")
    assert (run.label, run.num_steps, run.is_baseline) == ("with EAGLE3, 3 steps", 3, False)


def test_a_speeds_own_name_is_no_name_of_a_run() -> None:
    (run,) = runs("Output throughput: 85.1 tok/s\n")
    assert run.label is None


def test_a_rows_name_fills_only_what_the_row_lacks() -> None:
    table = (
        "| config | tok/s | steps |\n|---|---|---|\n| EAGLE-3 steps 5, accept len 2.3 | 70 | 4 |\n"
    )
    (run,) = runs(table)
    assert (run.num_steps, run.accept_len) == (4, 2.3)


def test_the_name_of_a_baseline_carries_nothing() -> None:
    assert told_by_label("baseline before EAGLE3 steps=3") == {}
    assert told_by_label("R2") == {}


@pytest.mark.parametrize(
    ("text", "listed", "conditional"),
    [
        ("per position acceptance: 0.71, 0.31, 0.22, 0.18\n", [0.71, 0.31, 0.22, 0.18], None),
        ("acceptance per position = [62.0%, 18%, 4%]\n", [62.0, 18.0, 4.0], None),
        ("Per-position acceptance: 0.7 0.3 0.45\n", [0.7, 0.3, 0.45], True),
        ("conditional acceptance by position: 0.7 / 0.6 / 0.5\n", [0.7, 0.6, 0.5], True),
        ("acceptance per position:\n pos 1: 71%\n pos 2: 22%\n\nend\n", [71.0, 22.0], None),
    ],
)
def test_acceptance_by_position_is_read_as_a_list_or_line_by_line(
    text: str, listed: list[float], conditional: bool | None
) -> None:
    (run,) = runs(text)
    assert run.extra["per_position"] == listed
    assert run.extra.get("conditional") == conditional


def test_a_number_of_drafts_beside_the_positions_is_kept() -> None:
    (run,) = runs("acceptance per position: 0.7, 0.3 (1,500 drafts)\n")
    assert run.extra["drafts"] == 1500


@pytest.mark.parametrize(
    "text", ["per position we saw little\n", "by position: 0.7\n", "1, 2, 3\n"]
)
def test_words_without_a_list_are_no_positions(text: str) -> None:
    assert runs(text) == ()


def test_a_sentence_within_json_is_no_figure() -> None:
    assert (
        runs('{\n "why": "a perfect draft reaches 71 tok/s, below the baseline of 90"\n}\n') == ()
    )


def test_a_sentence_is_no_name_of_a_run() -> None:
    (run,) = runs("after " + "a great many words about it " * 5 + "we saw 71 tok/s\n")
    assert (run.label, run.output_tok_s) == (None, 71.0)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("hey, release 0.5.12. no draft we get ~90 tok/s at bs1", "no draft"),
        ("eagle3 draft gives 61 tok/s", "eagle3 draft"),
        ("steps 3 was 46.7 tok/s", "steps 3"),
        ("it now runs at 55 tok/s", "this run"),
    ],
)
def test_what_is_said_between_name_and_speed_is_no_part_of_the_name(line: str, name: str) -> None:
    first = "plain 100 tok/s\n" if name != "no draft" else ""
    assert runs(first + line + ", accept length 1.7\nother 50 tok/s\n")[bool(first)].label == name


@pytest.mark.parametrize(
    "line",
    [
        '{"model_path": "m", "last_gen_throughput": 71.2, "avg_spec_accept_length": 1.0}',
        "[{'avg_spec_accept_length': 1.0, 'throughput': 71.2}]",
        '  "avg_spec_accept_length": 1.0,',
    ],
)
def test_members_of_an_object_are_no_clients_report(line: str) -> None:
    assert client_report([line], lambda _: False) == []
    assert client_report(["throughput: 71.2, accept length 1.0"], lambda _: False)


@pytest.mark.parametrize(
    "text",
    [
        "Throughput drops from 90 tok/s to 56.8 tok/s when I enable EAGLE3 (accept len 1.6).",
        "EAGLE3: 56.8 tokens per second, accept length 1.6. No speculation: 90 tokens per second.",
        "baseline 90 t/s, eagle3 56.8 t/s, accept_len 1.6",
        "I get 90 tps without EAGLE and only 56.8 tps with it, accept length = 1.6",
        "90 -> 56.8 tok/s after turning on speculative decoding, acc len 1.6",
        "no-spec=90tok/s eagle3=56.8tok/s acc_len=1.6",
        "vanilla 90 tok/s vs eagle 56.8 tok/s, acc-len 1.6",
    ],
)
def test_two_speeds_in_a_sentence_are_told_apart(text: str) -> None:
    runs = sorted(read_benches(text).runs, key=lambda run: run.output_tok_s or 0)
    assert [(r.output_tok_s, r.accept_len, r.is_baseline) for r in runs] == [
        (56.8, 1.6, False),
        (90.0, None, True),
    ]


def test_times_of_a_token_are_speeds() -> None:
    text = "Baseline: 10 ms/token. EAGLE3: 12.5 ms per token, accept length 1.6"
    assert [run.output_tok_s for run in read_benches(text).runs] == [100.0, 80.0]


@pytest.mark.parametrize(
    "text",
    [
        "It went from 90 tok/s to 120 tok/s with the new driver.",
        "From 80 tok/s with eagle to 120 tok/s with eagle3.",
        "90 -> 56.8 tok/s after the upgrade",
    ],
)
def test_a_change_of_something_else_has_no_baseline(text: str) -> None:
    assert not any(run.is_baseline for run in read_benches(text).runs)
