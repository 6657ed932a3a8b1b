"""The best so far, and when to stop: held against engines whose cost and acceptance are known."""

from __future__ import annotations

import pytest

from specdebug.diagnosis.outlook import Measured, bound, outlook
from specdebug.diagnosis.sweep import Point, plan_sweep
from specdebug.sglang.releases import Release

BASE = (
    *("--model-path", "m", "--speculative-algorithm", "EAGLE3"),
    *("--speculative-draft-model-path", "d", "--speculative-eagle-topk", "1"),
)


def chains(*steps: int) -> tuple[Point, ...]:
    settings = [{"steps": n, "draft_tokens": n + 1} for n in steps]
    release = Release.parse("0.5.10.post1")
    return plan_sweep(BASE, settings, release=release, concurrency=1).points


def engine(steps: int, *, accept: float, draft_ms: float, fixed_ms: float = 20.0) -> Measured:
    """A chain whose every draft is accepted with the same chance, in 10,000 passes."""
    passes = 10_000
    reach = [accept**k for k in range(steps + 1)] + [0.0]
    histogram = tuple(round(passes * (reach[k] - reach[k + 1])) for k in range(steps + 1))
    length = sum(reach)
    step_ms = fixed_ms + draft_ms * steps
    tok_s = 1000 * length / step_ms
    return Measured((tok_s * 0.99, tok_s, tok_s * 1.01), length, histogram, step_ms)


def test_the_ends_of_a_family_are_measured_first_and_then_what_promises_most() -> None:
    points = chains(1, 2, 3, 5, 15)
    known: dict[int, Measured] = {}
    order = []
    while (index := outlook(points, known).next) is not None:
        order.append(points[index].steps)
        known[index] = engine(points[index].steps or 0, accept=0.7, draft_ms=1.0)
    assert order[:2] == [1, 15]
    truth = {n: engine(n, accept=0.7, draft_ms=1.0).mean for n in (1, 2, 3, 5, 15)}
    found = outlook(points, known)
    best = found.best[1]
    assert points[best].steps == max(truth, key=truth.__getitem__)
    assert best in found.within


@pytest.mark.parametrize("accept", [0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("draft_ms", [0.2, 1.0, 4.0])
def test_stopping_early_never_loses_the_best(accept: float, draft_ms: float) -> None:
    points = chains(*range(1, 13))
    truth = {n: engine(n, accept=accept, draft_ms=draft_ms).mean for n in range(1, 13)}
    known: dict[int, Measured] = {}
    while (index := outlook(points, known).next) is not None:
        known[index] = engine(points[index].steps or 0, accept=accept, draft_ms=draft_ms)
    found = outlook(points, known)
    assert truth[points[found.best[1]].steps or 0] >= 0.999 * max(truth.values())


def test_a_draft_that_is_hardly_accepted_stops_the_sweep_with_the_account() -> None:
    points = chains(*range(1, 13))
    known = {index: engine(points[index].steps or 0, accept=0.2, draft_ms=3.0) for index in (0, 11)}
    found = outlook(points, known)
    assert found.best == {1: 0}
    assert found.next in (None, 1)
    assert len(found.cannot_win) >= 9
    why = found.cannot_win[8]
    assert "tokens a step at best" in why
    assert "steps 1, draft tokens 2 has" in why


def test_no_bound_is_broken_by_what_is_measured_later() -> None:
    points = chains(*range(1, 13))
    for accept in (0.2, 0.6, 0.9):
        known = {index: engine(index + 1, accept=accept, draft_ms=1.0) for index in (0, 11)}
        for index in range(1, 11):
            told = bound(points, known, index)
            assert told is not None
            assert told.tok_s >= engine(index + 1, accept=accept, draft_ms=1.0).mean


def test_where_not_even_a_perfect_draft_wins_the_run_without_one_is_named() -> None:
    """The story's first run: 28 ms a step with one draft token can give 71 tok/s, not 90."""
    points = chains(1, 2)
    rival = Measured((90.0, 90.0, 90.0), label="R0")
    known = {1: Measured((30.0,), 1.2, (80, 20, 0), 40.0)}
    told = outlook(points, known, rival=rival)
    # A shallower chain may be cheaper: its step time is not bounded by one deeper point.
    assert told.next == 0
    known = {0: Measured((56.8,), 1.6, (40, 60), 28.2)}
    told = outlook(points, known, rival=rival)
    assert told.next is None
    assert "R0 has 90" in told.cannot_win[1]


def test_what_has_no_account_is_measured_in_its_order() -> None:
    release = Release.parse("0.5.10.post1")
    trees = [{"topk": 4, "steps": 3, "draft_tokens": n} for n in (4, 8, 16)]
    points = plan_sweep(BASE, trees, release=release).points
    known = {0: Measured((50.0, 51.0, 52.0), 2.0, (1, 1, 1, 1), 40.0)}
    told = outlook(points, known, out=(1,))
    assert (told.next, told.cannot_win) == (2, {})
    assert bound(points, known, 2) is None


def test_settings_that_noise_cannot_tell_apart_are_the_range_of_the_optimum() -> None:
    points = chains(1, 2, 3)
    known = {
        0: Measured((50.0, 51.0, 50.5)),
        1: Measured((50.2, 51.1, 50.1)),
        2: Measured((30.0, 31.0, 30.5)),
    }
    assert outlook(points, known).within == (0, 1)


def test_more_requests_at_once_are_another_contest() -> None:
    settings = [{"steps": n, "concurrency": c} for n in (1, 12, 6) for c in (1, 8)]
    release = Release.parse("0.5.10.post1")
    points = plan_sweep(BASE, settings, release=release).points
    known = {0: Measured((50.0, 51.0, 52.0)), 1: Measured((300.0, 301.0, 299.0))}
    told = outlook(points, known)
    assert told.best == {1: 0, 8: 1}
    assert told.within == (0, 1)
    rival = Measured((90.0,) * 3, label="R0", running=8)
    chain = engine(1, accept=0.1, draft_ms=5.0)
    deep = engine(12, accept=0.1, draft_ms=5.0)
    # What beats eight requests at once says nothing about one at a time.
    told = outlook(points, {0: chain, 2: deep}, rival=rival)
    assert all("R0" not in why for why in told.cannot_win.values())
    assert set(told.cannot_win) == {4}
