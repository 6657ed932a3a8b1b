"""Lines above figures that name their run or their release, and lines that only look like it."""

from __future__ import annotations

import pytest

from specdebug.sglang.benches import BenchRun, read_benches
from specdebug.sglang.headings import heading_above, heading_text, release_in_heading

MT_BENCH = "#questions: 80, Throughput: {} token/s, Acceptance length: {}\n"
PLAIN, SPEC = MT_BENCH.format("158.40", "1.00"), MT_BENCH.format("361.70", "4.68")


def told(text: str) -> list[tuple[object, ...]]:
    return [(r.is_baseline, r.output_tok_s, r.accept_len) for r in read_benches(text).runs]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("plain server\n", "\nEAGLE-3, num_steps 8\n"),
        ("baseline\n", "EAGLE-3\n"),
        ("without speculation:\n", "\nwith EAGLE-3:\n"),
        ("## Baseline\n\n```\n", "```\n\n## EAGLE-3 steps=5\n\n```\n"),
        ("Without:\n", "\nWith EAGLE-3:\n"),
        ("plain: ", "EAGLE3: "),
        ("**MTP off**\nTotal latency: 50.1 s\n", "\n**MTP on**\nTotal latency: 22.0 s\n"),
    ],
)
def test_a_heading_names_the_run_of_the_lines_below(first: str, second: str) -> None:
    assert told(first + PLAIN + second + SPEC) == [(True, 158.4, None), (False, 361.7, 4.68)]


def test_one_token_a_step_under_the_drafts_heading_stays_a_figure_of_the_draft() -> None:
    assert told("EAGLE-3:\n" + PLAIN) == [(False, 158.4, 1.0)]
    assert told(PLAIN + "\n" + SPEC)[0] == (None, 158.4, 1.0)  # no heading, no side
    assert told("Off:\n" + PLAIN + "\nOn:\n" + SPEC)[0] == (None, 158.4, 1.0)  # off of what?


def test_a_heading_carries_the_drafts_arguments() -> None:
    (run,) = read_benches("EAGLE-3 steps=5 topk=8 draft=32\n" + SPEC).runs
    assert (run.num_steps, run.topk, run.requested_draft_tokens) == (5, 8, 32)


def test_words_of_another_kind_end_a_heading() -> None:
    between = "This one was taken on quite another machine by a colleague of ours.\n"
    assert told("plain server\n\n" + between + PLAIN) == [(None, 158.4, 1.0)]
    assert told("Why is it slower than without speculation?\n" + PLAIN) == [(None, 158.4, 1.0)]


BOX = (
    "+-------------------------+---------+\n| Key                     |   Value |\n"
    "+=========================+=========+\n| Number of concurrency   |      20 |\n"
    "| Total requests          |     100 |\n| Output token throughput (tok/s) | {} |\n"
    "+-------------------------+---------+\n"
)
DRAWN = (
    "┌──┬──┐\n│ Key │ Value │\n├──┼──┤\n│ Number of concurrency │ 20 │\n"
    "│ Output token throughput (tok/s) │ {} │\n└──┴──┘\n"
)


def of_box(run: BenchRun) -> tuple[object, ...]:
    return (run.label, run.is_baseline, run.output_tok_s, run.max_concurrency)


@pytest.mark.parametrize("box", [BOX, DRAWN])
def test_a_drawn_box_is_a_run_under_its_heading(box: str) -> None:
    first, second = box.format(611.4), box.format(402.9)
    text = f"Without EAGLE-3:\n{first}\nEAGLE-3:\nBenchmarking summary:\n{second}"
    assert [of_box(run) for run in read_benches(text).runs] == [
        ("Without EAGLE-3: concurrency 20", True, 611.4, 20),
        ("EAGLE-3: concurrency 20", False, 402.9, 20),
    ]


def test_a_box_without_a_heading_is_nobodys() -> None:
    (run,) = read_benches(BOX.format(611.4)).runs
    assert of_box(run) == (None, None, 611.4, 20)


def test_arguments_in_a_long_heading_are_read_and_the_label_stays_short() -> None:
    heading = (
        "With --speculative-algorithm EAGLE3 --speculative-draft-model-path drafts/x "
        "--speculative-num-steps 5 --speculative-eagle-topk 8 --speculative-num-draft-tokens 32:\n"
    )
    (run,) = read_benches(heading + BOX.format(402.9)).runs
    assert (run.num_steps, run.topk, run.requested_draft_tokens) == (5, 8, 32)
    assert run.label is not None
    assert len(run.label) < 110


LOADS = "| concurrency | tok/s |\n|---|---|\n| 1 | {} |\n| 8 | {} |\n"


def test_a_heading_is_about_its_whole_table() -> None:
    text = "Baseline:\n" + LOADS.format(100, 600) + "\nEAGLE3:\n" + LOADS.format(180, 700)
    assert [r.is_baseline for r in read_benches(text).runs] == [True, True, False, False]
    sets = "| dataset | tok/s |\n|---|---|\n| gsm8k | {} |\n"
    both = "No MTP:\n" + sets.format(90) + "\nMTP:\n" + sets.format(120)
    assert [r.is_baseline for r in read_benches(both).runs] == [True, False]


def test_rows_that_name_their_own_side_or_differ_are_not_the_headings() -> None:
    rows = "| run | tok/s | accept length |\n|---|---|---|\n| {} | 100 | - |\n| {} | 61 | 1.7 |\n"
    plain, spec = read_benches("MTP numbers:\n" + rows.format("TP8", "TP8 + draft")).runs
    assert (plain.is_baseline, spec.is_baseline) == (None, False)
    plain, spec = read_benches("MTP numbers:\n" + rows.format("baseline", "MTP")).runs
    assert (plain.is_baseline, spec.is_baseline) == (True, False)


PRINTED = (
    "============ Serving Benchmark Result ============\n"
    "Output token throughput (tok/s):         {}\nAccept length:                           {}\n"
    "==================================================\n"
)


def test_a_printed_table_has_a_heading_too() -> None:
    text = "Baseline:\n" + PRINTED.format(100, "1.00") + "\nEAGLE3:\n" + PRINTED.format(180, 2.5)
    assert told(text) == [(True, 100.0, None), (False, 180.0, 2.5)]
    assert told("EAGLE3:\n" + PRINTED.format(80, "1.00")) == [(False, 80.0, 1.0)]


def test_a_baseline_that_accepts_drafts_is_no_plain_run() -> None:
    assert told("Baseline:\n" + PRINTED.format(100, 1.9)) == [(False, 100.0, 1.9)]


def test_what_can_be_a_heading() -> None:
    assert heading_text("## Without MTP ##") == "Without MTP"
    for line in ("", "We then enabled it and it got slower.", "accept len: 1.6", "EAGLE3 90 tok/s"):
        assert heading_text(line) is None, line
    assert heading_above(["MTP:", "", "| a | b |"], 2) == "MTP"
    assert heading_above(["MTP:", "It is slow, as everybody here can see.", "| a | b |"], 2) is None


@pytest.mark.parametrize(
    ("line", "release"),
    [
        *(("0.5.10:", "0.5.10"), ("## sglang v0.5.11", "0.5.11"), ("before (0.5.9):", "0.5.9")),
        *(
            ("0.5.10.post1", "0.5.10.post1"),
            ("And after the upgrade to 0.5.13 it prints:", "0.5.13"),
        ),
        *(("from 0.5.10 to 0.5.11:", None), ("vllm 0.10.1:", None), ("flashinfer 0.5.3:", None)),
        *(("accept rate 0.55:", None), ("We upgraded to 0.5.11 in May.", None), ("1.0.0:", None)),
        ("10.0.5.10:", None),
    ],
)
def test_a_release_in_a_heading(line: str, release: str | None) -> None:
    found = release_in_heading(line)
    assert (str(found) if found else None) == release
