"""Verdicts that are never mixed: was the change applied, did the prediction hold, is the goal met.

Pure functions over figures and facts; nothing here knows a run's row or a page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from specdebug.measure.compare import EFFECT, Comparison, compare

__all__ = [
    "AppliedCheck",
    "AppliedVerdict",
    "Goal",
    "GoalStatus",
    "LogFacts",
    "OpenFinding",
    "Prediction",
    "PredictionVerdict",
    "Undecided",
    "applied_verdict",
    "closing_obstacles",
    "goal_status",
    "prediction_verdict",
    "with_latest",
]

METRIC_NAMES = {"tok_s": "throughput", "accept_len": "accept length", "step_ms": "step time"}
ASSUMED_CV = 0.03


@dataclass(frozen=True, slots=True)
class AppliedCheck:
    """How one will know that a change was applied, decided before the run.

    effective-equals: argument `key` has value `expected`. log-present, log-absent: a line that
    contains `key`. captured-layers: the layers fed to the draft are `expected`, in order.
    """

    kind: Literal["effective-equals", "log-present", "log-absent", "captured-layers"]
    key: str = ""
    expected: Any = None


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What a log can prove. lines: texts kept of it; whole: it begins at the start of the server.

    Only a whole log proves that a line is absent.
    """

    lines: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class AppliedVerdict:
    """applied: yes, no or unknown, with one sentence that says from what."""

    applied: Literal["yes", "no", "unknown"]
    reason: str


def applied_verdict(
    checks: Iterable[AppliedCheck],
    effective: Mapping[str, Any] | None,
    log: LogFacts | None = None,
    captured: Sequence[int] | None = None,
    asked: Mapping[str, Any] | None = None,
) -> AppliedVerdict:
    """Whether all checks hold. One that fails decides "no"; one that cannot be looked at "unknown".

    effective: the engine's own arguments (None: not known), never what was asked. captured:
    hidden-state indices that feed the draft, 0 for the embedding. asked: the arguments as given;
    without a check they decide nothing, but the reason names those that are not in force.
    """
    said: list[tuple[str, str]] = [_applied(c, effective, log, captured) for c in checks]
    if not said:
        reason = "No check was registered that would show the change"
        return AppliedVerdict("unknown", reason + _not_in_force(asked or {}, effective or {}) + ".")
    outcomes: tuple[Literal["no", "unknown"], ...] = ("no", "unknown")
    for outcome in outcomes:
        reasons = [text for got, text in said if got == outcome]
        if reasons:
            return AppliedVerdict(outcome, "; ".join(reasons) + ".")
    return AppliedVerdict("yes", "; ".join(text for _, text in said) + ".")


def _not_in_force(asked: Mapping[str, Any], effective: Mapping[str, Any]) -> str:
    """The arguments that the engine has otherwise than asked, as the end of a sentence."""
    told = [
        f"{key} is {effective[key]!r}, not {value!r} as asked"
        for key, value in asked.items()
        if value is not None and key in effective and not _equal(effective[key], value)
    ]
    return "; but " + "; ".join(told) if told else ""


def _applied(
    check: AppliedCheck,
    effective: Mapping[str, Any] | None,
    log: LogFacts | None,
    captured: Sequence[int] | None,
) -> tuple[Literal["yes", "no", "unknown"], str]:
    if check.kind == "effective-equals":
        if effective is None or check.key not in effective:
            return "unknown", f"the effective value of {check.key} is not known"
        value = effective[check.key]
        same = _equal(value, check.expected)
        return ("yes" if same else "no"), (
            f"{check.key} is {value!r} in the engine's own arguments"
            + ("" if same else f", not {check.expected!r}")
        )
    if check.kind == "captured-layers":
        if captured is None:
            return "unknown", "the captured layers are not known"
        wanted = [0 if f == "embed" else f for f in check.expected or []]
        same = list(captured) == wanted
        return ("yes" if same else "no"), (
            f"the captured layers are {list(captured)}" + ("" if same else f", not {wanted}")
        )
    if log is None:
        return "unknown", f"no log to look for {check.key!r} in"
    there = any(check.key in line for line in log.lines)
    if check.kind == "log-present":
        if there:
            return "yes", f"the log says {check.key!r}"
        if not log.whole:
            return "unknown", f"the log is an excerpt, so a missing {check.key!r} proves nothing"
        return "no", f"the log does not say {check.key!r}"
    if there:
        return "no", f"the log says {check.key!r}"
    if not log.whole:
        return "unknown", f"the log is an excerpt, so a missing {check.key!r} proves nothing"
    return "yes", f"the log from its start on does not say {check.key!r}"


def _equal(value: Any, expected: Any) -> bool:
    if isinstance(value, bool) or isinstance(expected, bool):
        return str(value).lower() == str(expected).lower()
    if value == expected:
        return True
    try:
        return float(value) == float(expected)
    except (TypeError, ValueError):
        return json.dumps(value, default=str) == json.dumps(expected, default=str)


@dataclass(frozen=True, slots=True)
class Prediction:
    """Registered before the run: which way `metric` goes against the baseline.

    direction: "up" or "down" by more than `margin` (0.02 is 2 %), or "within": the ratio to the
    baseline lies between low and high (None: open).
    """

    metric: str
    baseline: str
    direction: Literal["up", "down", "within"]
    low: float | None = None
    high: float | None = None
    margin: float = 0.02

    @property
    def interval(self) -> tuple[float, float]:
        """The predicted ratios."""
        if self.direction == "up":
            return 1 + self.margin, float("inf")
        if self.direction == "down":
            return 0.0, 1 - self.margin
        return (
            0.0 if self.low is None else self.low,
            float("inf") if self.high is None else self.high,
        )

    @property
    def named(self) -> str:
        """The metric in the field's words."""
        return METRIC_NAMES.get(self.metric, self.metric)

    def __str__(self) -> str:
        if self.direction == "within":
            low, high = self.interval
            return f"{self.named} at {low:g} to {high:g} times {self.baseline}"
        way = "rises" if self.direction == "up" else "falls"
        return f"{self.named} {way} by more than {100 * self.margin:g} % against {self.baseline}"


@dataclass(frozen=True, slots=True)
class PredictionVerdict:
    """supported, refuted or undecided, with the reason and the comparison it rests on."""

    outcome: Literal["supported", "refuted", "undecided"]
    reason: str
    comparison: Comparison | None = None


def prediction_verdict(
    prediction: Prediction,
    run: Sequence[float],
    baseline: Sequence[float],
    pooled_cv: float | None = None,
    *,
    pooled_df: int | None = None,
    assumed_cv: float | None = ASSUMED_CV,
    extra: int = 0,
    invalid: str | None = None,
) -> PredictionVerdict:
    """Hold the interval of the measured ratio against the predicted one.

    Inside: supported; disjoint: refuted; else undecided. With fewer than three repeats on a side
    the spread is pooled_cv, else assumed_cv, and the reason says "assumed". extra: which look
    beside the planned one this is, 0 for the planned one. invalid: why the runs must not be
    compared.
    """
    if not run or not baseline:
        which = "the run" if not run else prediction.baseline
        return PredictionVerdict("undecided", f"{prediction.named} of {which} was not measured.")
    few = min(len(run), len(baseline)) < 3
    assumed = few and pooled_cv is None and assumed_cv is not None
    outcome = compare(
        baseline,
        run,
        margin=prediction.margin,
        pooled_cv=pooled_cv if pooled_cv is not None else assumed_cv if few else None,
        pooled_df=pooled_df,
        effect=max(prediction.margin, EFFECT),
        extra=extra,
        invalid=invalid,
        what=prediction.named,
    )
    if outcome.low is None or outcome.high is None:
        return PredictionVerdict("undecided", outcome.sentence, outcome)
    low, high = prediction.interval
    ratio = (
        f"{outcome.ratio:.3f} times {prediction.baseline} ({outcome.low:.3f} to {outcome.high:.3f})"
    )
    note = f", with an assumed spread of {100 * (assumed_cv or 0):.0f} %" if assumed else ""
    single = ", unreplicated" if outcome.unreplicated else ""
    if extra:
        note += f", a look that was not planned and therefore at {100 * outcome.level:.4g} %"
    text = f"Predicted: {prediction}. Measured: {ratio}{note}{single}."
    if low <= outcome.low and outcome.high <= high:
        return PredictionVerdict("supported", text, outcome)
    if outcome.high < low or outcome.low > high:
        return PredictionVerdict("refuted", text, outcome)
    more = ""
    if outcome.repeats is not None:
        more = (
            f" About {outcome.repeats} repeats per configuration would show a change of "
            f"{100 * max(prediction.margin, EFFECT):.3g} %."
        )
    return PredictionVerdict("undecided", text + more, outcome)


@dataclass(frozen=True, slots=True)
class Goal:
    """The goal of an investigation.

    kind: "beat-baseline" (value: factor of the baseline), "at-least" or "at-most" (value: a figure
    in the metric's unit).
    """

    metric: str
    kind: Literal["beat-baseline", "at-least", "at-most"]
    value: float = 1.0


@dataclass(frozen=True, slots=True)
class GoalStatus:
    """met: None while it cannot be said. gap: value - target; ratio: value / target."""

    met: bool | None
    target: float | None
    value: float | None
    gap: float | None
    ratio: float | None
    sentence: str


def goal_status(goal: Goal, value: float | None, baseline: float | None = None) -> GoalStatus:
    """Whether the best figure meets the goal; says the gap, never more than the figures do."""
    target: float | None = goal.value
    if goal.kind == "beat-baseline":
        target = None if baseline is None else goal.value * baseline
    if target is None or value is None:
        lacking = "the baseline is not measured" if target is None else "nothing is measured yet"
        return GoalStatus(None, target, value, None, None, f"The goal cannot be judged: {lacking}.")
    beat = goal.kind == "beat-baseline"
    if goal.kind == "at-most":
        met = value <= target
    else:
        # The tolerance forgives a factor's rounding (1.1 x 90 is 99.00000000000001).
        met = value > target if beat and goal.value == 1.0 else value >= target * (1 - 1e-9)
    ratio = value / target if target else None
    word = "met" if met else "not met"
    name = METRIC_NAMES.get(goal.metric, goal.metric)
    against = "the baseline" if beat and goal.value == 1.0 else "the target"
    share = f" ({ratio:.2f} of it)" if ratio is not None else ""
    return GoalStatus(
        met,
        target,
        value,
        value - target,
        ratio,
        f"Goal {word}: {name} {value:.4g} against {against} of {target:.4g}{share}.",
    )


@dataclass(frozen=True, slots=True)
class OpenFinding:
    """An open finding as far as closing cares."""

    code: str
    severity: str
    statement: str = ""


def with_latest(status: GoalStatus, label: str, value: float | None) -> GoalStatus:
    """The same with where the latest run is, which is not the best one."""
    if value is None or not status.target:
        return status
    said = f" The latest run, {label}, is at {value / status.target:.2f} of it."
    return replace(status, sentence=status.sentence + said)


@dataclass(frozen=True, slots=True)
class Undecided:
    """A registered prediction without a verdict; run and reason are empty where none tested it."""

    hypothesis: str
    run: str = ""
    reason: str = ""

    @property
    def sentence(self) -> str:
        if not self.run:
            return f"The prediction of {self.hypothesis} is undecided: no run has tested it."
        said = self.reason.rstrip().rstrip(".")
        return f"The prediction of {self.hypothesis} is undecided after {self.run}: {said}."


def closing_obstacles(
    status: GoalStatus, findings: Iterable[OpenFinding], undecided: Iterable[Undecided] = ()
) -> tuple[str, ...]:
    """Why an investigation cannot be called resolved; empty when nothing stands in the way."""
    out: list[str] = []
    if status.met is not True:
        out.append(status.sentence)
    out += [one.sentence for one in undecided]
    out += [
        f"{f.code} ({f.severity}) is open" + (f": {f.statement}" if f.statement else ".")
        for f in findings
        if f.severity in ("critical", "high")
    ]
    return tuple(out)
