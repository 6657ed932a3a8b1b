"""What the figures of an investigation say beyond the findings, one sentence group per point.

Each point comes out of the figures given and stays away where they do not carry it.
"""

from __future__ import annotations

from dataclasses import dataclass

from specdebug.diagnosis.checks.capture import layers_of, named
from specdebug.diagnosis.checks.costs import against_baseline, predicted_best
from specdebug.diagnosis.decode import NEW_RATE, OLD_RATE, rate_windows
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.figures import Run, base_step_ms, baseline, cost, speculative_runs
from specdebug.diagnosis.profile import profile
from specdebug.diagnosis.reference import reference_for
from specdebug.eagle import aux_layers
from specdebug.eagle.speedup import break_even_accept_len, ceiling_tok_s
from specdebug.measure import acceptance

__all__ = ["Insight", "insights"]


@dataclass(frozen=True, slots=True)
class Insight:
    """One point: a key that names its kind, a heading, and what the figures say."""

    key: str
    heading: str
    text: str


def insights(case: Case) -> tuple[Insight, ...]:
    """Every point the figures carry, in the order a reader needs them."""
    found = (
        _step_times(case),
        _ceiling(case),
        _overhead(case),
        _training(case),
        _reference(case),
        _windows(case),
        _layers(case),
        _depth(case),
    )
    return tuple(point for point in found if point is not None)


def _with_steps(case: Case) -> list[Run]:
    return [r for r in speculative_runs(case) if r.step_ms is not None]


def _step_times(case: Case) -> Insight | None:
    base, rows = baseline(case), _with_steps(case)
    if not rows:
        return None
    said = [f"{base.label} {base.step_ms:.1f} ms"] if base and base.step_ms else []
    said += [f"{r.label} {r.step_ms:.1f} ms" for r in rows]
    assumed = "" if any(r.running_known for r in rows) else " (one request at a time assumed)"
    return Insight(
        "step-time",
        "Time of one step",
        f"Accept length over throughput gives the time of a step{assumed}: {', '.join(said)}.",
    )


def _ceiling(case: Case) -> Insight | None:
    said: list[str] = []
    lost: list[str] = []
    for base, run in against_baseline(case):
        plain = base_step_ms(base, run)
        if plain is None or run.step_ms is None or not run.window or base.tok_s is None:
            continue
        needed = break_even_accept_len(run.step_ms, plain)
        top = ceiling_tok_s(run.window, run.step_ms, run.running)
        said.append(
            f"{run.label} breaks even at an accept length of {needed:.2f} and reaches at most "
            f"{run.window} x 1000 / {run.step_ms:.1f} ms = {top:.0f} tok/s"
        )
        if top < base.tok_s:
            lost.append(
                f"with num_steps {run.num_steps} even a perfect draft loses to {base.tok_s:.4g}"
            )
    if not said:
        return None
    tail = f": {'; '.join(lost)}" if lost else ""
    return Insight("ceiling", "Break-even and ceiling", "; ".join(said) + tail + ".")


def _overhead(case: Case) -> Insight | None:
    line = cost(case)
    if line is None:
        return None
    deep = max(p.num_steps for p in line.points)
    text = (
        f"One extra draft step costs {line.slope_ms:.2f} ms, so {deep} of them are "
        f"{deep * line.slope_ms:.1f} ms."
    )
    if line.overhead_ms is not None and line.plain_ms is not None:
        text += (
            f" The fixed part of a step is {line.fixed_ms:.1f} ms, {line.overhead_ms:.1f} ms above "
            f"the plain step of {line.plain_ms:.1f} ms"
        )
        if line.overhead_ms > 0.5 * line.plain_ms:
            text += (
                ": an overhead that nothing explains. Suspects in order: draft path without CUDA "
                "graphs, verify attention backend, overlap scheduler off, two different clients."
            )
        else:
            text += "."
    return Insight("overhead", "Cost of a draft step and fixed overhead", text)


def _training(case: Case) -> Insight | None:
    accuracy, found = case.training.val_accuracy, profile(case)
    said: list[str] = []
    if accuracy is not None:
        for run in speculative_runs(case):
            if run.accept_len is not None and run.num_steps and run.chain:
                promised = acceptance.iid_accept_len(accuracy, run.num_steps)
                said.append(
                    f"{promised:.2f} at {run.num_steps} steps against {run.accept_len:.2f} measured"
                )
    if not said and found is None:
        return None
    text = ""
    if said and accuracy is not None:
        text = (
            f"Training accuracy {accuracy:.3f} as an independent chain predicts "
            + "; ".join(said)
            + "."
        )
    if found is not None and len(found.conditional) > 1:
        first, later = found.conditional[0], found.conditional[1]
        text += f" The first position is accepted at {first:.2f}, later ones at about {later:.2f}."
        if later < 0.6 * first:
            text += (
                " A drop after the first position points at the recurrent draft step (what is fed "
                "back, positions, training without unroll), not only at the layers fed."
            )
    return Insight("training", "Acceptance against training", text.strip())


def _reference(case: Case) -> Insight | None:
    reference = reference_for(case)
    if reference is None:
        return None
    said = []
    for run in speculative_runs(case):
        expected = reference.at(run.num_steps) if run.num_steps and run.chain else None
        if expected is None or run.accept_len is None:
            continue
        high = expected[1]
        beyond = "" if run.num_steps in reference.curve else " (end of the curve)"
        said.append(
            f"{run.label} {run.accept_len:.2f} at {run.num_steps} steps against "
            f"{high:.2f}{beyond}: {100 * (run.accept_len / high - 1):+.0f} %"
        )
    if not said:
        return None
    return Insight(
        "reference",
        "Against a public curve",
        f"{reference.target}, {reference.caveat}: a flag and no proof. " + "; ".join(said) + ".",
    )


def _windows(case: Case) -> Insight | None:
    said = []
    for row in case.measured:
        if row.accept_len is None or row.accept_rate is None:
            continue
        fits = rate_windows(row.accept_len, row.accept_rate)
        named_fits = [
            f"{' or '.join(map(str, windows))} if the rate is {formula}"
            for formula, windows in ((f, fits.get(f, ())) for f in (OLD_RATE, NEW_RATE))
            if windows
        ]
        if named_fits:
            said.append(
                f"{row.label}: length {row.accept_len:g} with rate {row.accept_rate:g} means "
                f"{'; '.join(named_fits)}"
            )
    if not said:
        return None
    return Insight(
        "window",
        "Tokens verified per step, from one line",
        "; ".join(said) + ". No source reading is needed for that.",
    )


def _layers(case: Case) -> Insight | None:
    layers = layers_of(case)
    if layers is None or layers.ids is None or not layers.everywhere:
        return None
    distinct = {(c.hidden_states_indices, c.not_capturable) for _, _, c in layers.everywhere}
    if len(distinct) < 2:
        return None
    said = [
        f"{a} to {b}: {named(c.hidden_states_indices)}"
        + (f", id {c.not_capturable[0]} cannot be captured" if c.not_capturable else "")
        for a, b, c in layers.everywhere
    ]
    text = f"Ids {list(layers.ids)} capture by release: " + "; ".join(said) + "."
    features = case.training.features
    newest = layers.everywhere[-1][1]
    if features is not None:
        advice = aux_layers.ids_for(features, layers.num_layers, layers.architecture, newest)
        if advice.ids is not None and advice.ids != layers.ids:
            text += f" On {newest} the trained layers need {list(advice.ids)}."
    return Insight("layers", "What the layer ids mean by release", text)


def _depth(case: Case) -> Insight | None:
    best = predicted_best(case)
    if best is None:
        return None
    base = baseline(case)
    short = ""
    if base is not None and base.tok_s and best.tok_s.high < base.tok_s:
        short = f", still below the baseline of {base.tok_s:.4g}: depth alone cannot fix it"
    return Insight(
        "depth",
        "Best number of draft steps",
        f"At the measured acceptance and cost num_steps {best.num_steps} is predicted best, "
        f"{best.tok_s.low:.0f} to {best.tok_s.high:.0f} tok/s{short}.",
    )
