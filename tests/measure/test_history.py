import json
import random
from pathlib import Path

import pytest

pytest.importorskip("ruptures", reason="change points need ruptures")

from specdebug.measure.history import clipped, shifts, steady_since


def history(levels: list[tuple[float, int]], cv: float = 0.02, seed: int = 1) -> list[float]:
    draw = random.Random(seed)
    return [level * draw.lognormvariate(0, cv) for level, n in levels for _ in range(n)]


def test_a_shift_of_the_rig_is_found_where_it_happened() -> None:
    found = shifts(history([(100, 20), (90, 20)]))
    assert len(found) == 1
    assert abs(found[0].index - 20) <= 1
    assert found[0].percent == pytest.approx(-10, abs=2)


@pytest.mark.parametrize("seed", range(5))
def test_a_steady_rig_has_no_shift(seed: int) -> None:
    assert shifts(history([(100, 40)], seed=seed)) == ()


def test_one_slow_run_is_no_drift() -> None:
    values = history([(100, 30)])
    values[14] = 60.0
    assert shifts(values) == ()
    assert min(clipped(values)) > 4.4


def test_only_runs_since_the_last_shift_compare_with_today() -> None:
    assert abs(steady_since(history([(100, 15), (80, 15), (95, 20)])) - 30) <= 1
    assert steady_since(history([(100, 30)])) == 0


def test_a_short_or_constant_history_says_nothing() -> None:
    assert shifts([100, 50, 100, 50]) == ()
    assert shifts([100.0] * 20) == ()


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan")])
def test_figures_that_are_no_positive_numbers_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        shifts([100.0] * 10 + [bad])


def test_flat_synthetic_histories_rarely_show_a_shift(shared: Path) -> None:
    rows = json.loads((shared / "data" / "synthetic_history.json").read_text())
    flat = [r["y"] for r in rows if not r["cps"]]
    found = sum(len(shifts(y)) for y in flat)
    assert 100 * found / sum(len(y) for y in flat) < 0.7


def test_large_synthetic_shifts_are_found(shared: Path) -> None:
    rows = json.loads((shared / "data" / "synthetic_history.json").read_text())
    wanted = hit = 0
    for row in rows:
        found = [s.index for s in shifts(row["y"])]
        for point in row["cps"]:
            index = point["i"] if isinstance(point, dict) else point
            before = sorted(row["y"][max(0, index - 8) : index])
            after = sorted(row["y"][index : index + 8])
            if not before or not after:
                continue
            change = after[len(after) // 2] / before[len(before) // 2] - 1
            if abs(change) < 0.08:
                continue
            wanted += 1
            hit += any(abs(f - index) <= 2 for f in found)
    assert wanted > 10
    assert hit / wanted > 0.8
