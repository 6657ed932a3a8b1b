"""False alarms, power and wrong "no material change" of our comparison, by simulation.

`python benchmarks/compare_rules.py [--trials 1000] [--json FILE]`. Log-normal noise; every trial is
judged by `measure.compare` itself, with the default margin of 2 %. A false alarm is any verdict of
change (regression, improvement, small change) where nothing changed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from specdebug.measure.compare import POOLED_ALPHA, compare, log_sd
from specdebug.measure.looks import FEW, alpha_of, extra_looks, figures_of
from specdebug.measure.two_means import ALIKE

CHANGES = ("regression", "improvement", "small change")
Figures = tuple[list[float], list[float]]
Rule = Callable[[random.Random, int, float, float], str]


def sample(
    draw: random.Random,
    n: int,
    cv: float,
    change: float,
    *,
    order: str = "",
    drift: float = 0.0,
    warm_up: bool = False,
) -> Figures:
    """n figures a side; `change` is the true relative change of the second.

    order: the runs in time, such as "AAABBB" or "ABBA"; drift: relative change of the machine from
    the first to the last of them. warm_up: the first figure of a side is 5 to 20 % slow half of the
    time.
    """
    places = order or "A" * n + "B" * n
    found: dict[str, list[float]] = {"A": [], "B": []}
    for i, side in enumerate(places):
        value = draw.gauss(0, log_sd(cv)) + math.log1p(drift) * i / max(len(places) - 1, 1)
        if side == "B":
            value += math.log1p(change)
        if warm_up and not found[side] and draw.random() < 0.5:
            value += math.log1p(-draw.uniform(0.05, 0.20))
        found[side].append(100 * math.exp(value))
    return found["A"], found["B"]


def interleaved(n: int) -> str:
    """ABBA ABBA ...: neither side comes first on average."""
    return "".join("AB" if k % 2 == 0 else "BA" for k in range(n))


def t_test(draw: random.Random, n: int, cv: float, change: float) -> str:
    """The default rule."""
    return compare(*sample(draw, n, cv, change), say_repeats=False).verdict


def pooled(draw: random.Random, n: int, cv: float, change: float, history: int = 8) -> str:
    """The spread pooled over `history` earlier configurations, whose own spreads differ by 30 %."""
    total, freedom = 0.0, 0
    sides = []
    for number in range(history + 2):
        own = cv * math.exp(draw.gauss(0, 0.3) - 0.045)
        shift = math.log1p(change) if number == history + 1 else 0.0
        logs = [draw.gauss(0, own) + shift for _ in range(n)]
        mean = sum(logs) / n
        total += sum((v - mean) ** 2 for v in logs)
        freedom += n - 1
        sides.append([100 * math.exp(v) for v in logs])
    spread = math.sqrt(math.expm1(total / freedom))
    return compare(
        sides[-2],
        sides[-1],
        pooled_cv=spread,
        pooled_df=freedom,
        prefer_pooled=True,
        say_repeats=False,
    ).verdict


def drifting(order: Callable[[int], str], drift: float = -0.03) -> Rule:
    """The default rule while the machine drifts during half of the sessions."""

    def rule(draw: random.Random, n: int, cv: float, change: float) -> str:
        now = drift if draw.random() < 0.5 else 0.0
        figures = sample(draw, n, cv, change, order=order(n), drift=now)
        return compare(*figures, say_repeats=False).verdict

    return rule


def cold(draw: random.Random, n: int, cv: float, change: float) -> str:
    """The default rule where nobody dropped the warm-up."""
    return compare(*sample(draw, n, cv, change, warm_up=True), say_repeats=False).verdict


RULES: dict[str, Rule] = {
    "t on logs": t_test,
    "pooled over 8 earlier": pooled,
    "drift, AAABBB": drifting(lambda n: "A" * n + "B" * n),
    "drift, ABABAB": drifting(lambda n: "AB" * n),
    "drift, ABBA": drifting(interleaved),
    "warm-up kept": cold,
}


def verdicts(rule: Rule, n: int, cv: float, change: float, trials: int, seed: int) -> Counter[str]:
    """How often each verdict is given."""
    draw = random.Random(f"{seed} {n} {cv} {change}")
    return Counter(rule(draw, n, cv, change) for _ in range(trials))


def alarms(found: Counter[str]) -> float:
    """Share of verdicts that call a change."""
    return sum(found[v] for v in CHANGES) / found.total()


def topped_up(
    trials: int,
    seed: int,
    *,
    n: int = 5,
    cv: float = 0.03,
    change: float = 0.0,
    looks: int = 4,
    planned: int = 1,
    known_spread: bool = False,
) -> dict[str, float]:
    """Share of trials in which a change is called: at the planned look, at any look, in all looks
    at plain 95 %; material: regression or improvement at any look.

    `looks` starts a side of `n` repeats each, added one at a time while nothing but "inconclusive"
    is said, `planned` of them in advance. known_spread: judged with a spread pooled over eight
    earlier configurations whose own spreads differ by 30 %, as `pooled` does.
    """
    draw = random.Random(f"{seed} {n} {cv} {change} {looks} {planned} {known_spread}")
    hit: Counter[str] = Counter()
    for _ in range(trials):
        own, spread, freedom = _spreads(draw, n, cv, known_spread)
        sides = [
            [[100 * math.exp(draw.gauss(shift, one)) for _ in range(n)] for _ in range(looks)]
            for one, shift in zip(own, (0.0, math.log1p(change)), strict=True)
        ]
        said: dict[str, str] = {}
        for look in range(1, looks + 1):
            figures = [figures_of(side[:look]) for side in sides]
            for name in ("plain", "ours"):
                if said.get(name, "inconclusive") != "inconclusive":
                    continue
                verdict = compare(
                    *figures,
                    extra=0 if name == "plain" else extra_looks(look, planned),
                    pooled_cv=spread,
                    pooled_df=freedom,
                    prefer_pooled=known_spread,
                    say_repeats=False,
                ).verdict
                said[name] = verdict
                if name == "ours" and verdict in CHANGES:
                    hit["by the planned look"] += look <= planned
                    hit["material"] += verdict != "small change"
        hit["plain"] += said["plain"] in CHANGES
        hit["ours"] += said["ours"] in CHANGES
    names = ("plain", "by the planned look", "ours", "material")
    return {name: hit[name] / trials for name in names}


def _spreads(
    draw: random.Random, n: int, cv: float, known: bool
) -> tuple[tuple[float, float], float | None, int | None]:
    """The true log spreads of both sides, and the pooled one with its degrees of freedom."""
    if not known:
        return (log_sd(cv), log_sd(cv)), None, None
    owns = [cv * math.exp(draw.gauss(0, 0.3) - 0.045) for _ in range(10)]
    total = 0.0
    for own in owns:
        logs = [draw.gauss(0, own) for _ in range(n)]
        mean = sum(logs) / n
        total += sum((v - mean) ** 2 for v in logs)
    freedom = 10 * (n - 1)
    return (owns[-2], owns[-1]), math.sqrt(math.expm1(total / freedom)), freedom


# Designs whose total of false alarms is printed: title, and what `topped_up` is told.
DESIGNS: dict[str, dict[str, Any]] = {
    "n3, CV 3 %": {"n": 3},
    "n5, CV 1 %": {"cv": 0.01},
    "n5, CV 3 %": {},
    "n5, CV 5 %": {"cv": 0.05},
    "n10, CV 3 %": {"n": 10},
    "n10, CV 5 %": {"n": 10, "cv": 0.05},
    "n5, CV 5 %, 8 starts": {"cv": 0.05, "looks": 8},
    "5 starts planned of 7, n3, CV 5 %": {"n": 3, "cv": 0.05, "looks": 7, "planned": 5},
    "pooled spread, n5, CV 3 %": {"known_spread": True},
    "pooled spread, n5, CV 5 %": {"known_spread": True, "cv": 0.05},
}


def called(before: Any, after: Any, alpha: float) -> Any:
    """In which rows of two arrays (trials, n) of logarithms the interval leaves out zero:
    the rule of `measure.two_means` for hundreds of thousands of trials."""
    import numpy as np
    from scipy.special import stdtrit

    count = before.shape[1]
    errors = [side.var(axis=1, ddof=1) / count for side in (before, after)]
    error = errors[0] + errors[1]
    freedom = error**2 * (count - 1) / (errors[0] ** 2 + errors[1] ** 2)
    if count <= FEW:
        alike = np.maximum(*errors) <= ALIKE**2 * np.minimum(*errors)
        freedom = np.where(alike, 2 * count - 2, freedom)
    apart = np.abs(after.mean(axis=1) - before.mean(axis=1))
    return apart > stdtrit(freedom, 1 - alpha / 2) * np.sqrt(error)


def share_called(
    n: int, cv: float, change: float, *, ratio: float = 1.0, trials: int = 200_000, seed: int = 1
) -> float:
    """Share of planned looks whose interval leaves out zero; ratio: spread of the second side over
    that of the first. Of no change a bound on false alarms, since the margin is tested before."""
    import numpy as np

    draw = np.random.default_rng(seed)
    before = draw.normal(0.0, log_sd(cv), (trials, n))
    after = draw.normal(math.log1p(change), log_sd(cv) * ratio, (trials, n))
    return float(called(before, after, alpha_of(n)).mean())


def share_called_pooled(
    n: int, cv: float, change: float, *, history: int = 8, trials: int = 200_000, seed: int = 1
) -> float:
    """The same with the spread pooled over `history` earlier configurations and these two, whose
    own spreads differ by 30 %, as in `pooled`."""
    import numpy as np
    from scipy.special import stdtrit

    draw = np.random.default_rng(seed)
    own = log_sd(cv) * np.exp(draw.normal(0, 0.3, (trials, history + 2)) - 0.045)
    logs = draw.normal(size=(trials, history + 2, n)) * own[:, :, None]
    spread = np.sqrt(logs.var(axis=2, ddof=1).mean(axis=1))
    apart = np.abs(logs[:, -1].mean(axis=1) + math.log1p(change) - logs[:, -2].mean(axis=1))
    freedom = (n - 1) * (history + 2)
    reach = float(stdtrit(freedom, 1 - POOLED_ALPHA / 2)) * math.sqrt(2 / n)
    return float((apart > reach * spread).mean())


def spent(n: int, looks: int, planned: int, trials: int = 100_000, seed: int = 1) -> float:
    """The most that all looks together spend: noise so large that nothing lies within the margin,
    so that every interval without zero is a false alarm. As `topped_up`, but in arrays."""
    import numpy as np

    draw = np.random.default_rng(seed)
    before, after = draw.normal(size=(2, trials, n * looks))
    quiet = np.ones(trials, dtype=bool)
    for look in range(1, looks + 1):
        sides = [side[:, : n * look] for side in (before, after)]
        if look >= 3:
            sides = [side.reshape(trials, look, n).mean(axis=2) for side in sides]
        alpha = alpha_of(sides[0].shape[1], extra_looks(look, planned))
        quiet &= ~called(sides[0], sides[1], alpha)
    return 1.0 - float(quiet.mean())


# Repeats a start, starts in all, of them planned.
WORST = ((3, 7, 1), (5, 4, 1), (5, 8, 1), (6, 8, 1), (10, 8, 1), (3, 7, 5), (5, 8, 5), (5, 8, 8))


def table(trials: int, seed: int) -> tuple[list[str], dict[str, Any]]:
    """All cells as lines and as JSON."""
    lines = [f"{trials} trials a cell, margin 2 %", "", "false alarms (true change 0)"]
    kept: dict[str, Any] = {"trials": trials, "false_alarms": {}, "power_5": {}, "verdicts": {}}
    sizes, spreads = (3, 5, 10), (0.01, 0.03, 0.05)
    head = "  ".join(f"CV {100 * cv:.0f} % n{n:<2}" for cv in spreads for n in sizes)
    for title, change, key in (
        ("false alarms", 0.0, "false_alarms"),
        ("\npower for a true loss of 5 %", -0.05, "power_5"),
    ):
        if change:
            lines.append(title)
        lines.append(f"{'':22}  {head}")
        for name, rule in RULES.items():
            row = {
                f"cv {cv} n {n}": alarms(verdicts(rule, n, cv, change, trials, seed))
                for cv in spreads
                for n in sizes
            }
            kept[key][name] = row
            lines.append(f"{name:22}  " + "  ".join(f"{v:10.3f}" for v in row.values()))
    lines.append('\n"no material change" said of a true change of exactly 2 % (must stay <= .05)')
    for cv in spreads:
        counts = {n: verdicts(t_test, n, cv, -0.02, trials, seed) for n in (3, 5, 10, 20)}
        shares = {n: c["no material change"] / c.total() for n, c in counts.items()}
        kept["verdicts"][f"cv {cv}"] = shares
        lines.append(
            f"  CV {100 * cv:.0f} %  " + "  ".join(f"n{n} {v:.3f}" for n, v in shares.items())
        )
    lines += _sharp(kept)
    kept["topping_up"] = {}
    lines.append(
        "\nadding starts while inconclusive, up to four looks: a change is called that is none"
    )
    lines.append(f"{'':34}  plain 95 %   planned look   all looks   beyond the margin")
    for title, design in DESIGNS.items():
        found = topped_up(trials, seed, **design)
        kept["topping_up"][title] = found
        lines.append(f"{title:34}  " + "   ".join(f"{v:10.3f}" for v in found.values()))
    kept["power_topped_up"] = topped_up(trials, seed, change=-0.05)
    lines.append(
        "a true loss of 5 % at n5, CV 3 %    "
        + "   ".join(f"{v:10.3f}" for v in kept["power_topped_up"].values())
    )
    kept["spent"] = {}
    lines.append("the most that all looks together spend, 100,000 trials")
    for n, looks, planned in WORST:
        share = kept["spent"][f"n {n} looks {looks} planned {planned}"] = spent(n, looks, planned)
        lines.append(f"  {n} repeats a start, {looks} starts, {planned} planned   {share:.4f}")
    return lines, kept


def _sharp(kept: dict[str, Any]) -> list[str]:
    """Planned looks in arrays: what the intervals alone do, far more exactly."""
    sizes = (3, 4, 5, 6, 10)
    rows = {
        "no change": [share_called(n, 0.03, 0.0) for n in sizes],
        "no change, spreads 1 to 2": [share_called(n, 0.03, 0.0, ratio=2) for n in sizes],
        "no change, spreads 1 to 5": [share_called(n, 0.03, 0.0, ratio=5) for n in sizes],
        "true loss of 5 %": [share_called(n, 0.03, -0.05) for n in sizes],
        "pooled, no change": [share_called_pooled(n, 0.03, 0.0) for n in sizes],
        "pooled, true loss of 5 %": [share_called_pooled(n, 0.03, -0.05) for n in sizes],
    }
    kept["intervals"] = {"n": sizes, "cv": 0.03, **rows}
    lines = [
        "\nintervals without zero at the planned look, CV 3 %, 200,000 trials",
        f"{'':26}  " + "  ".join(f"{'n' + str(n):>6}" for n in sizes),
    ]
    return lines + [
        f"{title:26}  " + "  ".join(f"{v:6.4f}" for v in row) for title, row in rows.items()
    ]


def main() -> int:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    args = parser.parse_args()
    lines, kept = table(args.trials, args.seed)
    sys.stdout.write("\n".join(lines) + "\n")
    if args.json:
        args.json.write_text(json.dumps(kept, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
