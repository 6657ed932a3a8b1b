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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from specdebug.measure.compare import alpha_of, compare, log_sd

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


def welch(draw: random.Random, n: int, cv: float, change: float) -> str:
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
    "Welch on logs": welch,
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
    trials: int, seed: int, sizes: Sequence[int] = (5, 10, 15, 20), cv: float = 0.03
) -> dict[str, float]:
    """Share of trials without a true change in which some look calls one.

    plain: every look at 95 %. corrected: every look at the level for that many looks. as given: the
    first look at 95 %, because nobody knew that more would come, all later ones corrected.
    material: the same, regression and improvement alone.
    """
    draw = random.Random(seed)
    hit: Counter[str] = Counter()
    last = len(sizes)
    for _ in range(trials):
        before, after = sample(draw, sizes[-1], cv, 0.0)
        said: dict[str, set[str]] = {"plain": set(), "corrected": set(), "as given": set()}
        for look, n in enumerate(sizes, start=1):
            sides = before[:n], after[:n]
            once = compare(*sides, say_repeats=False).verdict
            more = compare(*sides, looks=last, say_repeats=False).verdict
            said["plain"].add(once)
            said["corrected"].add(more)
            said["as given"].add(once if look == 1 else more)
        for name, given in said.items():
            hit[name] += bool(given & set(CHANGES))
        hit["material"] += bool(said["as given"] & {"regression", "improvement"})
    return {name: hit[name] / trials for name in ("plain", "corrected", "as given", "material")}


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
        row = {n: verdicts(welch, n, cv, -0.02, trials, seed) for n in (3, 5, 10, 20)}
        shares = {n: c["no material change"] / c.total() for n, c in row.items()}
        kept["verdicts"][f"cv {cv}"] = shares
        lines.append(
            f"  CV {100 * cv:.0f} %  " + "  ".join(f"n{n} {v:.3f}" for n, v in shares.items())
        )
    looks = topped_up(trials, seed)
    kept["topping_up"] = looks
    lines.append("\nsome look calls a change that is none; 5, 10, 15, 20 repeats, CV 3 %")
    lines.append("  " + ", ".join(f"{name} {share:.3f}" for name, share in looks.items()))
    lines.append(f"  (level of a corrected look: {100 * (1 - alpha_of(4)):.3g} %)")
    return lines, kept


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
