"""What every figure of a report means, in the report's own words; no figure is computed here."""

from __future__ import annotations

__all__ = ["DEFINITIONS"]

_SENTENCES = {
    "throughput": """output tokens of a repeat / its wall time as the client sees it, in tok/s; a
        run's figure is the mean of its n repeats, the spread their sample standard deviation""",
    "accept length": "tokens a verification yields, bonus token included; 1.00 accepts no draft",
    "step time": "1000 x accept length x running requests / throughput, in ms",
    "break-even accept length": "step time / plain step time: where speculation draws level",
    "ceiling": "(num_steps + 1) tokens per step time, in tok/s: a perfect draft",
    "window": "tokens verified in one step, num_steps + 1 for a chain",
    "accept rate": "differs by release and source; never compared here",
    "gap account": """the way from the baseline's tok/s to the measured: first acceptance, then the
        loss shared by the milliseconds that drafting and the rest add to a step""",
    "regression": "lower throughput than the run compared with, by more than the noise could be",
    "regression by acceptance, by cost": """log change of throughput = log change of accept length
        - log change of step time; a part is named when it carries over a fifth of the loss""",
    "unreplicated": "a single figure; judged with an assumed run-to-run spread, which is named",
    "fixed, verified": "a later run that would have shown the fault was measured and does not",
    "symptom": "a finding that says that something is wrong and how much, not what",
}
DEFINITIONS: tuple[tuple[str, str], ...] = tuple(
    (name, " ".join(words.split())) for name, words in _SENTENCES.items()
)
