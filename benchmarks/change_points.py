"""Score the search for change points of a control's history on two data sets and on fresh ones.

`python benchmarks/change_points.py [--shared DIR] [--json FILE]`. TCPD: F1 with a margin of 5 and
cover, as its authors define them. Synthetic benchmark histories: strict F1 (pooled over the series
that have change points, margin 5, every true point matched once) and false points per 100 figures
on the series that have none. The peers' figures were measured on the same files. Fresh histories of
the same kind, drawn by another generator and never used to choose the setting, say whether it was
fitted to the files; with them goes what the watch over new runs cries and misses.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from specdebug.measure.history import change_points
from specdebug.measure.watch import judge_newest

ROOT = Path(__file__).resolve().parents[1]
NOT_UNIVARIATE = {"run_log", "uk_coal_employ"}  # two-dimensional; has missing values
MARGIN = 5
# TCPD F1, cover, synthetic strict F1, false points per 100; None where not measured.
PEERS: dict[str, tuple[float | None, float | None, float | None, float | None]] = {
    "best published default": (0.738, 0.693, None, None),
    "ruptures Binseg": (0.730, 0.691, None, None),
    "ruptures KernelCPD alone": (None, None, 0.629, 0.49),
    "Perfherder": (0.714, None, 0.569, 0.0),
    "asv": (0.704, None, 0.393, 0.0),
    "never flag anything": (0.668, 0.575, 0.0, 0.0),
    "Otava, 3 % and more": (None, None, 0.849, 0.43),
    "Otava": (0.601, 0.506, None, None),
}


def hits(true: Iterable[int], found: Iterable[int], margin: int = MARGIN) -> int:
    """How many true points have a found one within `margin`; a found one serves once."""
    left = set(found)
    count = 0
    for point in sorted(true):
        near = sorted((abs(point - x), x) for x in left if abs(point - x) <= margin)
        if near:
            count += 1
            left.remove(near[0][1])
    return count


def tcpd_f1(annotations: Mapping[str, Sequence[int]], found: Iterable[int]) -> float:
    """Precision against the union of the annotators, recall averaged over them; 0 is a point."""
    people = [{0, *points} for points in annotations.values()]
    said = {0, *found}
    precision = hits(set().union(*people), said) / len(said)
    recall = statistics.fmean(hits(points, said) / len(points) for points in people)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _segments(points: Iterable[int], n: int) -> list[tuple[int, int]]:
    bounds = [0, *sorted({p for p in points if 0 < p < n}), n]
    return list(pairwise(bounds))


def tcpd_cover(annotations: Mapping[str, Sequence[int]], found: Iterable[int], n: int) -> float:
    """Overlap (Jaccard) of each annotator's segments with the best found one, by length."""
    mine = _segments(found, n)
    scores = []
    for points in annotations.values():
        total = 0.0
        for a, b in _segments(points, n):
            best = max(
                (min(b, q) - max(a, p)) / (max(b, q) - min(a, p)) if min(b, q) > max(a, p) else 0.0
                for p, q in mine
            )
            total += (b - a) * best
        scores.append(total / n)
    return statistics.fmean(scores)


def read_tcpd(folder: Path) -> dict[str, tuple[list[float], dict[str, list[int]]]]:
    """The univariate series without gaps, with what five people marked."""
    annotations = json.loads((folder / "annotations.json").read_text())
    series = {}
    for path in sorted(folder.glob("*.json")):
        if path.stem != "annotations" and path.stem not in NOT_UNIVARIATE:
            raw = json.loads(path.read_text())["series"][0]["raw"]
            series[path.stem] = ([float(v) for v in raw], annotations[path.stem])
    return series


def score_tcpd(folder: Path) -> tuple[float, float, int]:
    """Mean F1, mean cover, number of series."""
    series = read_tcpd(folder)
    found = {name: change_points(values).indices for name, (values, _) in series.items()}
    f1 = [tcpd_f1(marks, found[name]) for name, (_, marks) in series.items()]
    cover = [tcpd_cover(marks, found[name], len(v)) for name, (v, marks) in series.items()]
    return statistics.fmean(f1), statistics.fmean(cover), len(series)


def drawn(count: int, seed: int) -> list[dict[str, Any]]:
    """Fresh histories: 40 to 120 figures, CV 1 to 3 %, half with AR(1) .3, 2 % outliers, half of
    them with up to four shifts of 3 to 20 % at least eight figures apart."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        n, cv = draw.randint(40, 120), draw.uniform(0.01, 0.03)
        ar = 0.3 if draw.random() < 0.5 else 0.0
        points: list[int] = []
        if number % 2:
            for _ in range(draw.randint(1, 4)):
                place = draw.randint(8, n - 8)
                if all(abs(place - p) >= 8 for p in points):
                    points.append(place)
        level, noise, y = math.log(100.0), 0.0, []
        for i in range(n):
            if i in points:
                level += draw.choice((-1, 1)) * math.log1p(draw.uniform(0.03, 0.20))
            noise = ar * noise + draw.gauss(0, cv * math.sqrt(1 - ar * ar))
            outlier = draw.uniform(0.05, 0.30) if draw.random() < 0.02 else 0.0
            y.append(math.exp(level + noise - outlier))
        rows.append({"y": y, "cps": sorted(points)})
    return rows


def score_watch(count: int, seed: int) -> tuple[float, float, float]:
    """Alarms per 1,000 runs of a steady series, and the share of true losses of 5 and of 10 % that
    is called after two runs; CV 1 to 3 %, 12 to 30 runs."""
    draw = random.Random(seed)
    alarms, missed = 0, [0, 0]
    for _ in range(count):
        cv = draw.uniform(0.01, 0.03)
        y = [100 * math.exp(draw.gauss(0, cv)) for _ in range(draw.randint(12, 30))]
        alarms += judge_newest(y).state in ("regression", "improvement")
        for k, loss in enumerate((0.05, 0.10)):
            slow = [*y[:-2], *(v * (1 - loss) for v in y[-2:])]
            missed[k] += judge_newest(slow).state != "regression"
    return 1000 * alarms / count, 1 - missed[0] / count, 1 - missed[1] / count


def score_synthetic(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float, int]:
    """Strict F1, false points per 100 figures on flat series, number of series."""
    right = said = true = false = flat = 0
    for row in rows:
        found = change_points(row["y"]).indices
        if row["cps"]:
            right += hits(row["cps"], found)
            said += len(found)
            true += len(row["cps"])
        else:
            false += len(found)
            flat += len(row["y"])
    return 2 * right / (said + true), 100 * false / flat, len(rows)


def main() -> int:
    """Score and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(os.environ.get("SPECDEBUG_SHARED", ROOT.parent / "shared"))
    parser.add_argument("--shared", type=Path, default=beside, help="folder that holds data/")
    parser.add_argument("--fresh", type=int, default=500, help="fresh histories to draw")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    args = parser.parse_args()
    data = args.shared / "data"
    if not data.is_dir():
        sys.stderr.write(f"{data} is not there; name its parent with --shared\n")
        return 1
    f1, cover, series = score_tcpd(data / "tcpd")
    rows = json.loads((data / "synthetic_history.json").read_text())
    strict, false, histories = score_synthetic(rows)
    fresh, fresh_false, drawn_count = score_synthetic(drawn(args.fresh, seed=1))
    cried, five, ten = score_watch(args.fresh, seed=2)
    lines = [
        f"TCPD: {series} series; synthetic: {histories} histories",
        f"{'':26} {'TCPD F1':>8} {'cover':>6} {'strict F1':>10} {'false per 100':>14}",
    ]
    ours = {"specdebug": (f1, cover, strict, false)}
    for name, figures in (ours | PEERS).items():
        cells = ["-" if v is None else f"{v:.3f}" for v in figures[:3]]
        last = "-" if figures[3] is None else f"{figures[3]:.2f}"
        lines.append(f"{name:26} {cells[0]:>8} {cells[1]:>6} {cells[2]:>10} {last:>14}")
    lines.append(
        f"\n{drawn_count} fresh histories: strict F1 {fresh:.3f}, false per 100 {fresh_false:.2f}"
    )
    lines.append(
        f"watch over new runs, {args.fresh} series: {cried:.1f} alarms per 1,000 steady runs; "
        f"a loss of 5 % called after two runs {five:.2f}, of 10 % {ten:.2f}"
    )
    sys.stdout.write("\n".join(lines) + "\n")
    if args.json:
        named = {"tcpd_f1": f1, "tcpd_cover": cover, "strict_f1": strict, "false_per_100": false}
        named |= {"fresh_strict_f1": fresh, "fresh_false_per_100": fresh_false}
        named |= {"alarms_per_1000": cried, "called_5": five, "called_10": ten}
        args.json.write_text(json.dumps(named, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
