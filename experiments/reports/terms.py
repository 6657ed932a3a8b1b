"""What each figure means, in one sentence, for tooltips, legends and the report's last page."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.models import Prediction


@dataclass(frozen=True, slots=True)
class Term:
    """A figure's name, its unit ("" for a pure number), its definition, and which way is good."""

    name: str
    unit: str
    definition: str
    digits: int = 1


TERMS: dict[str, Term] = {
    "tok_s": Term(
        "Throughput",
        "tok/s",
        "Output tokens of a repeat divided by its wall time, both seen by the client.",
    ),
    "accept_len": Term(
        "Accept length",
        "tok/step",
        "Tokens that one target pass yields on average, the bonus token included: tokens after "
        "the first divided by verify passes, pooled over a repeat. 1.00 without speculation.",
        2,
    ),
    "accept_rate": Term(
        "Accept rate",
        "",
        "The engine's own rate. Its formula depends on the release, so it is not compared "
        "across releases.",
        2,
    ),
    "step_ms": Term(
        "Step time",
        "ms",
        "Time of one draft-and-verify step: 1000 × accept length × running requests / throughput.",
    ),
    "ratio": Term(
        "Ratio",
        "× baseline",
        "Mean throughput of the run divided by that of its baseline.",
        2,
    ),
    "spread": Term(
        "Spread",
        "",
        "Standard deviation between the repeats of one run; n is how many repeats there are.",
    ),
}


def term(key: str) -> Term:
    """The term of a metric; an unknown metric stands for itself."""
    return TERMS.get(key, Term(key.replace("_", " "), "", ""))


def predicted(prediction: Prediction | None) -> str:
    """A prediction in words: "throughput rises against R0"; empty where there is none."""
    if prediction is None:
        return ""
    name = term(prediction.metric).name.lower()
    against = f" against {prediction.baseline.label}" if prediction.baseline else ""
    if prediction.direction == Prediction.Direction.WITHIN:
        base = prediction.baseline.label if prediction.baseline else "the baseline"
        return f"{name} between {prediction.low:g} and {prediction.high:g} × {base}"
    return f"{name} {prediction.get_direction_display()}{against}"
