import importlib.util
import json
import math
import random
import sys
from pathlib import Path

import pytest

pytest.importorskip("ruptures", reason="change points need ruptures")

from specdebug.measure.history import change_points, clipped, shifts, steady_since


def _benchmark():  # type: ignore[no-untyped-def]
    """benchmarks/change_points.py, which is no package."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "change_points.py"
    spec = importlib.util.spec_from_file_location("bench_change_points", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


benchmark = _benchmark()


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
    assert min(clipped(values)) > 80


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


def test_a_wandering_series_is_called_so_and_cut_coarsely() -> None:
    draw = random.Random(4)
    level, walk = 0.0, []
    for _ in range(200):
        level += draw.gauss(0, 0.01)
        walk.append(100 * math.exp(level))
    found = change_points(walk)
    assert found.wanders
    assert len(found.indices) < 8
    assert not change_points(history([(100, 100), (80, 100)])).wanders


def test_figures_below_zero_are_taken_as_they_are() -> None:
    draw = random.Random(5)
    values = [draw.gauss(-1 if i < 30 else 1, 0.2) for i in range(60)]
    assert change_points(values).indices == (30,)


def test_the_level_before_and_after_says_how_many_figures_it_rests_on() -> None:
    (found,) = shifts(history([(100, 20), (90, 15)]))
    assert found.n_before + found.n_after == 35
    assert abs(found.n_before - 20) <= 1


def test_public_series_are_cut_as_well_as_by_the_best_published_default(shared: Path) -> None:
    f1, cover, series = benchmark.score_tcpd(shared / "data" / "tcpd")
    assert series == 30
    assert f1 >= 0.738
    assert cover >= 0.693


def test_synthetic_histories_are_cut_better_than_by_each_peer(shared: Path) -> None:
    rows = json.loads((shared / "data" / "synthetic_history.json").read_text())
    strict, false, _ = benchmark.score_synthetic(rows)
    assert strict > 0.849
    assert false <= 0.43


def test_histories_that_never_chose_the_setting_are_cut_as_well() -> None:
    strict, false, _ = benchmark.score_synthetic(benchmark.drawn(120, seed=11))
    assert strict > 0.9
    assert false < 0.43


def test_the_score_counts_a_late_point_and_a_double_one_as_wrong() -> None:
    assert benchmark.hits([20], [21]) == 1
    assert benchmark.hits([20], [26]) == 0
    assert benchmark.hits([20, 22], [21]) == 1
    assert benchmark.tcpd_f1({"a": [20]}, [20]) == 1.0
    assert benchmark.tcpd_f1({"a": [20]}, []) == pytest.approx(2 / 3)
    assert benchmark.tcpd_cover({"a": [20]}, [20], 40) == 1.0
    assert benchmark.tcpd_cover({"a": [20]}, [], 40) == 0.5
