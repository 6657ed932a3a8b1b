"""The next experiments worth their time, ranked by what they settle and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from specdebug.diagnosis.arguments import release_knowledge, setups
from specdebug.diagnosis.checks.costs import predicted_best
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.figures import baseline, cost, cost_points, runs, speculative_runs
from specdebug.diagnosis.profile import profile

__all__ = ["Advice", "advise"]

Effort = Literal["no run", "one request", "one run", "several runs"]
_PRICE: dict[Effort, float] = {
    "no run": 1.0,
    "one request": 1.2,
    "one run": 2.0,
    "several runs": 4.0,
}


@dataclass(frozen=True, slots=True)
class Advice:
    """One experiment. settles: the question it answers; prediction: what either outcome means.

    worth: rank score, what it settles over what it costs; higher is better, no unit. key: its kind,
    the same each time it is given. run: label of the run that it starts from; num_steps: the depth
    it asks for (next_run.py makes a run of them).
    """

    action: str
    settles: str
    effort: Effort
    prediction: str
    worth: float
    key: str = ""
    run: str | None = None
    num_steps: int | None = None


def advise(case: Case, open_codes: Iterable[str] = ()) -> tuple[Advice, ...]:
    """Ranked experiments for a case; open_codes: the codes of findings that are still open."""
    codes = set(open_codes)
    rules: tuple[Callable[[Case, set[str]], Advice | None], ...] = (
        _accept_len,
        _overhead,
        _positions,
        _baseline,
        _second_depth,
        _best_depth,
        _release,
        _repeats,
        _prompts,
    )
    found = [a for rule in rules if (a := rule(case, codes)) is not None]
    return tuple(sorted(found, key=lambda a: -a.worth))


def _advice(
    action: str,
    settles: str,
    effort: Effort,
    prediction: str,
    weight: float,
    key: str,
    run: str | None = None,
    num_steps: int | None = None,
) -> Advice:
    worth = round(weight / _PRICE[effort], 2)
    return Advice(action, settles, effort, prediction, worth, key, run, num_steps)


def _accept_len(case: Case, codes: set[str]) -> Advice | None:
    spec = speculative_runs(case)
    blind = [r for r in spec if r.tok_s and r.accept_len is None]
    if not blind or any(r.origin == "log" for r in spec):
        return None
    run = blind[-1]
    known = [r for r in speculative_runs(case) if r.step_ms is not None and r.accept_len]
    prediction = "it says whether acceptance or the step time changed"
    if known and run.tok_s:
        # With the step time of the nearest known run, the throughput would mean this length.
        like = [(r.label, run.tok_s * (r.step_ms or 0.0) / 1000.0 / run.running) for r in known]
        prediction = "; ".join(
            f"about {length:.2f} if its steps cost what those of {label} do"
            for label, length in like
        )
    return _advice(
        f"Record the accept length of {run.label}",
        f"whether its change ({'; '.join(run.changes) or 'what it changed'}) raised acceptance: "
        "its throughput alone cannot say",
        "one request",
        prediction,
        12.0,
        "accept-length",
        run.label,
    )


def _overhead(case: Case, codes: set[str]) -> Advice | None:
    line = cost(case)
    if line is None or line.overhead_ms is None or line.plain_ms is None:
        return None
    if line.overhead_ms <= 0.5 * line.plain_ms:
        return None
    main = next(r for r in speculative_runs(case) if r.step_ms is not None)
    length, steps = main.accept_len or 1.0, main.num_steps or 1
    without = 1000.0 * length * main.running / (line.plain_ms + line.slope_ms * steps)
    return _advice(
        f"Find the unexplained {line.overhead_ms:.0f} ms of every step: one run with "
        "SGLANG_RECORD_STEP_TIME=1, then one suspect at a time (draft CUDA graphs, verify "
        "attention backend, overlap scheduler)",
        "which part of the step the fixed overhead is in",
        "one run",
        f"without it {main.label} would reach up to {without:.0f} tok/s at the same acceptance",
        18.0,
        "overhead",
        main.label,
    )


def _positions(case: Case, codes: set[str]) -> Advice | None:
    found = profile(case)
    if found is not None and found.measured:
        return None
    spec = [r for r in speculative_runs(case) if r.accept_len]
    if not spec:
        return None
    doubt = codes & {
        "acceptance-below-training",
        "acceptance-collapses",
        "aux-layer-mismatch",
        "first-position-low",
        "dead-draft",
    }
    return _advice(
        "Record acceptance by position (spec_accept_histogram of /generate answers)",
        "features (first position low) or recurrent step (later positions low)",
        "one request",
        "a healthy first position with a drop after it clears the layers; a low first one accuses "
        "them",
        9.0 if doubt else 3.0,
        "positions",
        spec[-1].label,
    )


def _baseline(case: Case, codes: set[str]) -> Advice | None:
    base = baseline(case)
    if base is None:
        if not any(r.tok_s for r in speculative_runs(case)):
            return None
        return _advice(
            "Measure the same load without speculation",
            "whether the draft wins at all, and the break-even accept length",
            "one run",
            "without it nothing can be called slower or faster",
            16.0,
            "plain-run",
            next(r.label for r in speculative_runs(case) if r.tok_s),
        )
    if len(base.samples) >= 3:
        return None
    return _advice(
        "Repeat the baseline with the same client, prompts and concurrency as the variants, "
        "interleaved",
        "whether the gap is partly one of clients or of noise",
        "several runs",
        f"if it stays at {base.tok_s:.4g} tok/s the cost account stands as it is",
        10.0,
        "repeat-baseline",
        base.label,
    )


def _second_depth(case: Case, codes: set[str]) -> Advice | None:
    points = cost_points(case)
    if len(points) != 1:
        return None
    other = 1 if points[0].num_steps > 3 else points[0].num_steps + 4
    return _advice(
        f"One run at num_steps {other}, everything else equal",
        "how the step time splits into draft forwards and a fixed part",
        "one run",
        "the slope is the cost of a draft step, the rest is fixed",
        10.0,
        "second-depth",
        points[0].label,
        other,
    )


def _best_depth(case: Case, codes: set[str]) -> Advice | None:
    best = predicted_best(case)
    if best is None:
        return None
    tried = {r.num_steps for r in runs(case)}
    if best.num_steps in tried:
        return None
    return _advice(
        f"One run at num_steps {best.num_steps}",
        "whether the acceptance and cost lines hold between the measured depths",
        "one run",
        f"predicted {best.tok_s.low:.0f} to {best.tok_s.high:.0f} tok/s",
        8.0,
        "best-depth",
        next((r.label for r in speculative_runs(case) if r.step_ms is not None), None),
        best.num_steps,
    )


def _release(case: Case, codes: set[str]) -> Advice | None:
    if case.engine_version is not None or any(release_knowledge(s).release for s in setups(case)):
        return None
    return _advice(
        "Write down the engine's release",
        "override rules, accept-rate formula and the meaning of layer ids depend on it",
        "no run",
        "",
        5.0,
        "release",
    )


def _repeats(case: Case, codes: set[str]) -> Advice | None:
    single = [r for r in speculative_runs(case) if r.tok_s and len(r.samples) < 3]
    if len(single) < 2:
        return None
    return _advice(
        f"Repeat {', '.join(r.label for r in single)} interleaved, at least 3 times each",
        "small differences between variants, which single figures leave open",
        "several runs",
        "at a spread of 3 % eight repeats each show a change of 5 %",
        9.0,
        "repeat-variants",
        single[-1].label,
    )


def _prompts(case: Case, codes: set[str]) -> Advice | None:
    if "prompts-not-representative" not in codes:
        return None
    return _advice(
        "Measure again on real prompts",
        "acceptance, which random prompts do not measure",
        "one run",
        "",
        12.0,
        "real-prompts",
    )
