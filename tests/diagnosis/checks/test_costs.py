from typing import Any

import pytest

from specdebug.diagnosis.checks import costs as checks
from specdebug.diagnosis.facts import Measured, Positions
from specdebug.diagnosis.figures import cost_points


def pair(
    tok_s: float, length: float, steps: int = 3, base: float = 90.0, running: float | None = None
) -> list[Measured]:
    return [
        Measured("plain", "t", speculative=False, tok_s=(base,), running=running),
        Measured(
            "spec",
            "t",
            speculative=True,
            num_steps=steps,
            topk=1,
            tok_s=(tok_s,),
            accept_len=length,
            running=running,
        ),
    ]


def test_a_loss_beyond_noise_is_named_and_split(make: Any) -> None:
    found = checks.slower_than_baseline(make.case(runs=pair(56.8, 1.6, 1)))
    assert found is not None
    assert "-36.9 %" in found.statement
    assert "acceptance +60.0 %, step time +153.5 % (1.60 / 2.54 = 0.63)" in found.statement
    assert "assumed spread" in found.settled_by


@pytest.mark.parametrize("tok_s", [88.0, 90.0, 150.0])
def test_a_gain_or_a_loss_within_noise_is_quiet(make: Any, tok_s: float) -> None:
    assert checks.slower_than_baseline(make.case(runs=pair(tok_s, 2.0))) is None


def test_runs_at_another_load_are_not_compared(make: Any) -> None:
    rows = [
        Measured("plain", "t", speculative=False, tok_s=(2000.0,), running=64),
        Measured(
            "spec", "t", speculative=True, num_steps=3, tok_s=(150.0,), accept_len=2, running=1
        ),
    ]
    assert checks.slower_than_baseline(make.case(runs=rows)) is None


@pytest.mark.parametrize(("steps", "topk", "window", "wins"), [(3, 4, 16, False), (7, 4, 16, True)])
def test_a_tree_yields_no_more_than_its_depth_and_one(
    make: Any, steps: int, topk: int, window: int, wins: bool
) -> None:
    tree = Measured(
        "tree", "t", speculative=True, num_steps=steps, topk=topk, draft_tokens=window,
        tok_s=(60.0,), accept_len=2.8, running=1,
    )  # fmt: skip
    plain = Measured("plain", "t", speculative=False, tok_s=(100.0,), running=1)
    found = checks.speculation_cannot_win(make.case(runs=[plain, tree]))
    assert (found is None) == wins
    assert found is None or "above the 4 a step can yield" in found.statement


def test_each_run_is_set_against_the_plain_run_at_its_load(make: Any) -> None:
    def row(label: str, speculative: bool, tok_s: float, running: int) -> Measured:
        length = 2.3 if speculative else None
        return Measured(
            label, "t", speculative=speculative, tok_s=(tok_s,), accept_len=length, running=running
        )

    rows = [
        *(row("plain 1", False, 92.0, 1), row("spec 1", True, 131.0, 1)),
        *(row("plain 32", False, 1900.0, 32), row("spec 32", True, 1510.0, 32)),
    ]
    found = checks.slower_than_baseline(make.case(runs=rows))
    assert found is not None
    assert found.statement.startswith("Slower than the plain run of 1900 tok/s: spec 32 1510 tok/s")
    assert "spec 1 " not in found.statement
    assert checks.slower_than_baseline(make.case(runs=rows[:3])) is None


def test_rows_of_step_times_alone_are_compared_too(make: Any) -> None:
    def rows(ms: float) -> list[Measured]:
        return [
            Measured("plain", "t", speculative=False, step_ms=10.0),
            Measured("spec", "t", speculative=True, num_steps=1, accept_len=1.7, step_ms=ms),
        ]

    found = checks.speculation_cannot_win(make.case(runs=rows(24.0)))
    assert found is not None
    assert "24.0 ms against 10.0 ms" in found.statement
    assert checks.speculation_cannot_win(make.case(runs=rows(14.0))) is None
    assert checks.slower_than_baseline(make.case(runs=rows(14.0))) is None


def test_a_capped_server_is_not_compared(make: Any) -> None:
    lines = make.stretch([2.2] * 8, running=48, queue=80)
    case = make.case(
        requested=make.asked(),
        boots=[make.boot(lines, args=make.args(max_running_requests=48))],
        baseline_tok_s=20000.0,
    )
    assert checks.slower_than_baseline(case) is None


def test_even_a_perfect_draft_loses_in_the_storys_first_run(make: Any) -> None:
    found = checks.speculation_cannot_win(make.case(runs=make.story_rows()))
    assert found is not None
    assert found.severity == "critical"
    assert "2.54" in found.statement
    assert "71 tok/s of 90" in found.statement


def test_a_break_even_inside_the_window_can_win(make: Any) -> None:
    # 3.66 is break-even at 15 steps: hard, but not impossible.
    assert checks.speculation_cannot_win(make.case(runs=pair(46.7, 1.9, 15))) is None


def test_below_break_even_says_how_much_is_missing(make: Any) -> None:
    found = checks.below_break_even(make.case(runs=pair(56.8, 1.6, 1)))
    assert found is not None
    assert "+0.94 accept length" in found.statement
    assert "-10.4 ms" in found.statement


def test_above_break_even_is_quiet(make: Any) -> None:
    assert checks.below_break_even(make.case(runs=pair(155, 2.88, 3))) is None


def test_about_sixteen_ms_of_the_storys_steps_are_unexplained(make: Any) -> None:
    found = checks.step_overhead_unexplained(make.case(runs=make.story_rows()))
    assert found is not None
    assert "0.89 ms" in found.statement
    assert "16.2 ms above" in found.statement


def test_a_step_that_costs_little_more_than_plain_has_no_overhead(make: Any) -> None:
    rows = [
        Measured("plain", "t", speculative=False, tok_s=(100.0,)),
        Measured("a", "t", speculative=True, num_steps=1, tok_s=(130.0,), accept_len=1.6),
        Measured("b", "t", speculative=True, num_steps=3, tok_s=(150.0,), accept_len=2.2),
    ]
    assert checks.step_overhead_unexplained(make.case(runs=rows)) is None


def test_one_depth_cannot_show_an_overhead(make: Any) -> None:
    assert checks.step_overhead_unexplained(make.case(runs=pair(56.8, 1.6, 1))) is None


def test_a_run_with_other_layers_does_not_bend_the_cost_line(make: Any) -> None:
    rows = [*make.story_rows()]
    assert [p.num_steps for p in cost_points(make.case(runs=rows))] == [1, 15]


def test_a_depth_that_is_predicted_faster_is_named_with_its_range(make: Any) -> None:
    found = checks.draft_too_deep(make.case(runs=make.story_rows()))
    assert found is not None
    assert "num_steps 3" in found.statement
    assert "57 to 68 tok/s" in found.statement


def test_the_best_depth_is_not_too_deep(make: Any) -> None:
    rows = [
        Measured("plain", "t", speculative=False, tok_s=(100.0,)),
        Measured("a", "t", speculative=True, num_steps=1, tok_s=(140.0,), accept_len=1.8),
        Measured("b", "t", speculative=True, num_steps=4, tok_s=(220.0,), accept_len=3.36),
    ]
    positions = Positions("p", None, "h", (0.8, 0.8, 0.8, 0.8), 3000, "f", 4, 3.36)
    assert checks.draft_too_deep(make.case(runs=rows, positions=[positions])) is None


def test_without_a_cost_line_no_depth_is_judged(make: Any) -> None:
    positions = Positions("p", None, "h", (0.6, 0.2, 0.1), 3000, "f", 3, 1.7)
    assert checks.draft_too_deep(make.case(runs=pair(80, 1.7), positions=[positions])) is None


def test_a_better_depth_that_was_measured_is_quoted_and_not_predicted(make: Any) -> None:
    def rows(third: float) -> list[Measured]:
        figures = [(1, 85.0, 1.70), (3, third, 2.48), (8, 81.7, 2.86)]
        drafted = [
            Measured(f"n{n}", "t", speculative=True, num_steps=n, tok_s=(s,), accept_len=a)
            for n, s, a in figures
        ]
        return [Measured("plain", "t", speculative=False, tok_s=(60.0,)), *drafted]

    found = checks.draft_too_deep(make.case(runs=rows(103.3)))
    assert found is not None
    assert "num_steps 3 gave 103.3 tok/s" in found.statement
    assert found.fix == "Use --speculative-num-steps 3."


def test_a_loss_beyond_the_assumed_spread_is_told_and_one_within_it_is_not(make: Any) -> None:
    def runs(tok_s: float) -> list[Measured]:
        plain = Measured("plain", "t", speculative=False, tok_s=(100.0,))
        return [plain, Measured("spec", "t", speculative=True, num_steps=3, tok_s=(tok_s,))]

    assert checks.slower_than_baseline(make.case(runs=runs(91.0))) is not None
    assert checks.slower_than_baseline(make.case(runs=runs(93.0))) is None
    assert checks.slower_than_baseline(make.case(runs=runs(109.5))) is None
