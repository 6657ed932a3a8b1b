"""Sweeps and comparisons go on run by run, survive crashes, stop early, and are resumed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from experiments import dispatch, groups
from experiments.models import Investigation, Repeat, Run, RunGroup
from experiments.queries.groups import group_page
from experiments.refusal import Refused
from workers.plan import Workload

pytestmark = pytest.mark.usefixtures("sent")
BASE = (
    *("--model-path", "m", "--speculative-algorithm", "EAGLE3"),
    *("--speculative-draft-model-path", "d", "--speculative-eagle-topk", "1"),
    *("--speculative-num-steps", "3", "--speculative-num-draft-tokens", "4"),
)
COMMON = groups.Common("reference", BASE, Workload(), {})


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    ids: list[int] = []

    def send(pk: int, *_: Any, **__: Any) -> bool:
        ids.append(pk)
        return True

    monkeypatch.setattr(dispatch, "_send", send)
    return ids


def sweep(investigation: Investigation, *steps: int, **more: Any) -> RunGroup:
    settings = [{"steps": n} for n in steps]
    return groups.add_sweep(
        investigation=investigation, title="depth", common=COMMON, settings=settings, **more
    )


def finish(run: Run, tok_s: float, *, state: str = Run.State.DONE, **figures: Any) -> Run | None:
    """What a worker does at the end of a run; returns the run that follows."""
    Run.objects.filter(pk=run.pk).update(state=state, ended_at=timezone.now(), reason="it broke")
    if state == Run.State.DONE:
        for index in range(3):
            Repeat.objects.create(
                run=run, index=index, tok_s=tok_s * (1 + 0.002 * index), **figures
            )
    groups.advance_after(run.pk)
    return Run.objects.filter(group=run.group_id, group_place=(run.group_place or 0) + 1).first()


def chain(steps: int, accept: float = 0.2, draft_ms: float = 5.0) -> dict[str, Any]:
    """Figures of a chain whose drafts are accepted with one chance everywhere."""
    reach = [accept**k for k in range(steps + 1)]
    counts = [
        round(3000 * (reach[k] - (reach[k + 1] if k < steps else 0))) for k in range(steps + 1)
    ]
    return {
        "accept_histogram": counts,
        "verify_ct": 3000,
        "accept_len": sum(reach),
        "step_ms": 20 + draft_ms * steps,
    }


def first(group: RunGroup) -> Run:
    return group.runs.get(group_place=0)


def test_a_sweep_makes_and_queues_one_run_after_another(
    investigation: Investigation, sent: list[int], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        group = sweep(investigation, 1, 2, 3)
    run = first(group)
    assert (run.state, run.group_place) == ("queued", 0)
    assert "--speculative-num-steps" in run.plan["server_args"]
    assert sent == [run.pk]
    # Called again and again while a run is on its way, nothing happens.
    assert groups.advance(group.pk) is None
    assert groups.advance_all() == []
    second = finish(run, 50.0)
    assert second is not None
    third = finish(second, 51.0)
    assert third is not None
    assert finish(third, 52.0) is None
    group.refresh_from_db()
    assert (group.state, group.reason) == ("done", "every setting that could win is measured")
    page = group_page(investigation.slug, group.number)
    assert page.measured == 3
    (best,) = page.best
    assert best.figures is not None
    assert best.figures.mean == pytest.approx(52.104)


def test_settings_that_come_out_the_same_are_never_run(investigation: Investigation) -> None:
    settings = [{"steps": 1, "draft_tokens": n} for n in (2, 8, 16)]
    group = groups.add_sweep(
        investigation=investigation, title="window", common=COMMON, settings=settings
    )
    assert len(group.plan["points"]) == 1
    assert [one["name"] for one in group.dropped] == [
        "steps 1, draft tokens 8",
        "steps 1, draft tokens 16",
    ]
    assert finish(first(group), 50.0) is None
    group.refresh_from_db()
    assert group.state == "done"


def test_a_sweep_stops_where_the_cost_account_says_that_nothing_left_can_win(
    investigation: Investigation,
) -> None:
    group = sweep(investigation, *range(1, 11))
    ends = []
    run: Run | None = first(group)
    while run is not None:
        steps = int(group.plan["points"][group_made(group)[-1]]["steps"])
        ends.append(steps)
        figures = chain(steps)
        tok_s = 1000 * figures["accept_len"] / figures["step_ms"]
        run = finish(run, tok_s, **figures)
        group.refresh_from_db()
    assert ends[:2] == [1, 10]
    assert len(ends) <= 3
    assert group.state == "done"
    assert f"{10 - len(ends)} left out, because they cannot win any more" in group.reason
    row = next(r for r in group_page(investigation.slug, group.number).rows if r.point.steps == 6)
    assert row.how == "left out"
    assert "tokens a step at best" in row.why
    # Somebody who wants the whole curve gets it.
    whole = sweep(investigation, 1, 10, 5, stop_early=False)
    run = first(whole)
    for steps in (1, 10):
        figures = chain(steps)
        assert run is not None
        run = finish(run, 1000 * figures["accept_len"] / figures["step_ms"], **figures)
    assert run is not None


def group_made(group: RunGroup) -> list[int]:
    group.refresh_from_db()
    made: list[int] = group.plan["made"]
    return made


def test_a_crash_between_two_runs_is_made_good_by_the_housekeeping(
    investigation: Investigation,
) -> None:
    group = sweep(investigation, 1, 2)
    Run.objects.filter(pk=first(group).pk).update(state=Run.State.DONE)  # and nobody went on
    (made,) = groups.advance_all()
    assert Run.objects.get(pk=made).group_place == 1
    assert groups.advance_all() == []


def test_two_failures_in_a_row_stop_it_and_resuming_takes_them_again(
    investigation: Investigation,
) -> None:
    group = sweep(investigation, 1, 2, 3, 5)
    second = finish(first(group), 0, state=Run.State.FAILED)
    assert second is not None
    assert finish(second, 0, state=Run.State.LOST) is None
    group.refresh_from_db()
    assert group.state == "stopped"
    assert group.reason.endswith("failed one after the other: it broke")
    third = groups.resume(group)
    assert third is not None
    assert third.group_place == 2
    assert groups.resume(group) is None  # a double click
    run: Run | None = third
    count = 0
    while run is not None:
        run = finish(run, 50.0 + count)
        count += 1
    group.refresh_from_db()
    assert (group.state, count) == ("done", 4)


def test_one_failure_costs_its_point_alone(investigation: Investigation) -> None:
    group = sweep(investigation, 1, 2, 3)
    run = finish(first(group), 0, state=Run.State.FAILED)
    while run is not None:
        run = finish(run, 50.0)
    group.refresh_from_db()
    assert group.state == "done"
    rows = group_page(investigation.slug, group.number).rows
    assert [row.how for row in rows].count("failed") == 1
    assert next(row.why for row in rows if row.how == "failed") == "it broke"
    group.refresh_from_db()
    assert group.reason == "every setting that could win is measured, but for 1 that failed"


def test_a_cancelled_run_stops_its_group(investigation: Investigation) -> None:
    group = sweep(investigation, 1, 2)
    dispatch.cancel_run(first(group))
    assert groups.advance_all() == []
    group.refresh_from_db()
    assert group.state == "stopped"
    assert "R0 was cancelled" in group.reason
    again = groups.resume(group)
    assert again is not None
    assert again.group_place == 1


def test_stopping_cancels_the_run_on_its_way(investigation: Investigation) -> None:
    group = sweep(investigation, 1, 2)
    for _ in range(2):
        groups.stop(group, reason="enough")
    assert (group.state, group.reason) == ("stopped", "enough")
    assert first(group).state == "cancelled"
    assert groups.advance(group.pk) is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ([], "nothing is left to measure"),
        ([{"depth": 3}], "no axis"),
        ([{"topk": 4, "steps": "many"}], "nothing is left to measure"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused_and_leaves_nothing(
    investigation: Investigation, settings: list[dict[str, Any]], said: str
) -> None:
    with pytest.raises(Refused, match=said):
        groups.add_sweep(investigation=investigation, title="x", common=COMMON, settings=settings)
    assert not RunGroup.objects.exists()
    assert not Run.objects.exists()


def test_a_plan_that_cannot_run_is_refused_before_it_is_kept(investigation: Investigation) -> None:
    bad = replace(COMMON, server_args=(*BASE, "--port", "1"))
    with pytest.raises(Refused, match="chosen by the worker"):
        groups.add_sweep(
            investigation=investigation, title="x", common=bad, settings=[{"steps": 1}]
        )
    assert not RunGroup.objects.exists()


# ---- comparisons ---------------------------------------------------------------------------------


def test_turns_alternate_where_starts_are_cheap_and_end_with_the_control() -> None:
    assert groups.turns(2, 2, in_turns=True) == [0, 1, 0, 1, 0]
    assert groups.turns(3, 1, in_turns=False) == [0, 1, 2, 0]
    assert groups.turns(2, 2, in_turns=False) == [0, 0, 1, 1, 0]


def test_a_comparison_is_taken_in_turns_and_shows_the_controls_drift(
    investigation: Investigation,
) -> None:
    plain = replace(COMMON, server_args=("--model-path", "m"))
    group = groups.add_comparison(
        investigation=investigation,
        title="draft or not",
        common=plain,
        variants={"draft": BASE},
        rounds=2,
    )
    run: Run | None = first(group)
    speeds = iter([90.0, 60.0, 88.0, 59.0, 70.0])
    order = []
    while run is not None:
        order.append(len(run.plan["server_args"]) > 2)
        run = finish(run, next(speeds))
    assert order == [False, True, False, True, False]
    page = group_page(investigation.slug, group.number)
    assert page.group.state == "done"
    control, draft = page.rows
    assert control.figures is not None
    # A start is one figure: its repeats are more alike than two starts.
    assert len(control.figures.tok_s) == 3
    assert draft.comparison is not None
    assert draft.comparison.verdict == "regression"
    assert page.drift is not None
    assert page.drift.verdict == "regression"
    runs = list(group.runs.order_by("group_place"))
    assert runs[1].baseline == runs[0]
    assert runs[3].repeats_run == runs[1]


def test_a_turn_that_failed_is_taken_again_after_resuming(investigation: Investigation) -> None:
    group = groups.add_comparison(
        investigation=investigation, title="x", common=COMMON, variants={"b": BASE[:2]}
    )
    run = finish(first(group), 50.0)
    assert run is not None
    dispatch.cancel_run(run)
    groups.advance_after(run.pk)
    again = groups.resume(group)
    assert again is not None
    assert again.plan["server_args"] == list(BASE[:2])
    last = finish(again, 40.0)
    assert last is not None
    assert finish(last, 50.0) is None
    group.refresh_from_db()
    assert group.state == "done"


def test_a_group_page_asks_a_fixed_number_of_queries(
    investigation: Investigation, django_assert_num_queries: Any
) -> None:
    group = sweep(investigation, 1, 2, 3)
    run: Run | None = first(group)
    while run is not None:
        run = finish(run, 50.0)
    with django_assert_num_queries(3):
        group_page(investigation.slug, group.number)
