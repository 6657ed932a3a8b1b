"""Tables laid out as people lay them out: turned on their side, with two speeds in a row, in ms."""

import pytest

from specdebug.sglang.benches import BenchRun, read_benches


def figures(run: BenchRun) -> tuple[object, ...]:
    return (run.label, run.is_baseline, run.output_tok_s, run.accept_len, run.batch_size)


TURNED = {
    "pipes": (
        "| | baseline | EAGLE3 |\n|---|---|---|\n| output tok/s | 90 | 56.8 |\n"
        "| accept length | - | 1.6 |\n| batch size | 1 | 1 |\n"
    ),
    "tabs": (
        "metric\tbaseline\tEAGLE3\noutput tok/s\t90\t56.8\naccept length\t\t1.6\nbatch size\t1\t1\n"
    ),
    "wide spaces": (
        "Metric            baseline   EAGLE3\nbatch size        1          1\n"
        "throughput tok/s  90         56.8\naccept len        -          1.6\n"
    ),
    "commas": (
        "metric,baseline,EAGLE3\nbatch size,1,1\nthroughput tok/s,90,56.8\naccept len,,1.6\n"
    ),
}


@pytest.mark.parametrize("text", TURNED.values(), ids=TURNED.keys())
def test_a_table_with_a_column_for_each_run_is_read_like_one_with_a_row(text: str) -> None:
    assert [figures(run) for run in read_benches(text).runs] == [
        ("baseline", True, 90.0, None, 1),
        ("EAGLE3", False, 56.8, 1.6, 1),
    ]


def test_a_table_of_other_things_is_not_turned_into_runs() -> None:
    assert not read_benches("| | a | b |\n|---|---|---|\n| colour | red | 5 |\n").runs
    assert not read_benches("| step | what |\n|---|---|\n| 1 | start the server |\n").runs


def test_two_speeds_in_a_row_are_two_runs_at_its_load() -> None:
    text = (
        "batch  baseline tok/s  eagle3 tok/s  accept len\n"
        "1      92.0            131.0         2.31\n"
        "32     1900.0          1510.0        2.30\n"
    )
    assert [figures(run) for run in read_benches(text).runs] == [
        ("batch 1: baseline tok/s", True, 92.0, None, 1),
        ("batch 1: eagle3 tok/s", False, 131.0, 2.31, 1),
        ("batch 32: baseline tok/s", True, 1900.0, None, 32),
        ("batch 32: eagle3 tok/s", False, 1510.0, 2.3, 32),
    ]


def test_two_speeds_of_which_none_is_a_baselines_stay_one_run() -> None:
    text = "| run | output tok/s | tok/s per GPU |\n|---|---|---|\n| a | 80 | 10 |\n"
    (run,) = read_benches(text).runs
    assert (run.label, run.output_tok_s) == ("a", 80.0)


@pytest.mark.parametrize(
    ("title", "cell", "ms"),
    [
        ("step time (ms)", "24.0", 24.0),
        ("step_ms", "24", 24.0),
        ("step time (s)", "0.024", 24.0),
        ("step time [s]", "1.2", 1200.0),
        ("step time", "0.024", 24.0),
        ("step time", "24.0", 24.0),
        ("step time", "24 ms", 24.0),
        ("step time", "0.024 s", 24.0),
    ],
)
def test_a_time_is_in_the_unit_that_stands_with_it(title: str, cell: str, ms: float) -> None:
    (run,) = read_benches(f"| run | {title} |\n|---|---|\n| a | {cell} |\n").runs
    assert run.step_ms == pytest.approx(ms)


def test_a_plain_row_may_say_one_token_a_step_and_no_draft_steps() -> None:
    text = (
        "| run | num_steps | tok/s | accept len |\n|---|---|---|---|\n"
        "| {} | 0 | 90 | 1.0 |\n| EAGLE3 | 1 | 56 | 1.6 |\n"
    )
    for label in ("baseline", "first"):
        plain, spec = read_benches(text.format(label)).runs
        assert (plain.is_baseline, plain.accept_len, plain.num_steps) == (True, None, None)
        assert (spec.is_baseline, spec.accept_len) == (False, 1.6)
    dead = text.replace("| 0 |", "| 3 |").format("EAGLE3 old")
    assert [run.accept_len for run in read_benches(dead).runs] == [1.0, 1.6]


PRINTED = (
    "============ Serving Benchmark Result ============\n"
    "Successful requests:                     64\n"
    "Output token throughput (tok/s):         96.40\n"
    "Accept length:                           1.90\n"
    "==================================================\n"
)


def test_a_baseline_told_in_words_beside_a_printed_table_is_read() -> None:
    spoken = "Without speculation the same prompts give 118.2 tok/s.\n\n"
    plain, spec = read_benches(spoken + PRINTED).runs
    assert (plain.is_baseline, plain.output_tok_s, plain.line) == (True, 118.2, 1)
    assert (spec.output_tok_s, spec.accept_len) == (96.4, 1.9)
    assert len(read_benches("We hope for 118.2 tok/s.\n\n" + PRINTED).runs) == 1
    assert len(read_benches("With EAGLE3 it was 118.2 tok/s.\n\n" + PRINTED).runs) == 1


@pytest.mark.parametrize("off", ["EAGLE3 off", "eagle: off", "speculation disabled", "MTP=off"])
def test_a_draft_that_is_off_is_the_baseline(off: str) -> None:
    spec, plain = read_benches(f"EAGLE3 on: 56.8 tok/s\n{off}: 90 tok/s\n").runs
    assert (spec.is_baseline, plain.is_baseline) == (False, True)
