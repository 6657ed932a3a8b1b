"""What the library finds in one run: in its log, its figures, its family; and what a patch leaves
open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.checkup.cases import Cases
from experiments.models import ConfigChange
from experiments.queries import Dossier, RunFacts
from specdebug.diagnosis.case import Case
from specdebug.diagnosis.checks.capture import layers_of
from specdebug.diagnosis.diagnose import Diagnosis, diagnose
from specdebug.diagnosis.findings import CATALOGUE, Finding
from specdebug.diagnosis.verdicts import ASSUMED_CV
from specdebug.eagle import aux_layers
from specdebug.eagle.draft_config import DraftConfig
from specdebug.measure.compare import MARGIN, compare
from specdebug.reference import capture

# Findings that need figures at two depths; what the run's own case says of them is less.
FAMILY_CODES = frozenset({"acceptance-collapses", "draft-too-deep", "step-overhead-unexplained"})
# Findings that compare the run's own figures with the baseline's; the log's throughput is another.
FIGURE_CODES = frozenset(code for code, entry in CATALOGUE.items() if entry.family == "cost")
# They say that the run is slower than the plain one, in two ways.
SLOWNESS_CODES = frozenset({"slower-than-baseline", "below-break-even"})
# The release's rules say what is captured, not what a patched source captures.
CAPTURE_CODES = frozenset({"aux-layer-mismatch", "aux-layer-not-capturable"})
CAPTURE_SOURCES = ("deepseek_v2.py", "llama.py", "qwen2.py", "qwen3.py", "model_runner.py")


@dataclass(frozen=True)
class Seen:
    """Findings of one run, and by code what is missing to judge the others."""

    findings: tuple[Finding, ...]
    untried: Mapping[str, str]


def look(cases: Cases, facts: RunFacts | None, *, patched: bool = False) -> Seen:
    """Diagnose the run's cases and take each finding from the one that knows best.

    Costs come from the figures, findings over several depths from the family, the rest from where
    it shows. patched: the source that captures the hidden states is not the release's
    (`capture_patched`).
    """
    alone = diagnose(cases.log)
    found = {f.code: f for f in alone.findings}
    untried = dict(alone.untried)
    if cases.figures is not None:
        _take(diagnose(cases.figures), found, untried, own=FIGURE_CODES)
        _account_for_noise(cases.figures, found, untried)
    if cases.family is not None:
        _take(diagnose(cases.family), found, untried, own=FAMILY_CODES, only=True)
    if facts is not None:
        _account_for_source(cases.log, facts, found, untried, patched)
    return Seen(tuple(found.values()), untried)


def _take(
    second: Diagnosis,
    found: dict[str, Finding],
    untried: dict[str, str],
    *,
    own: frozenset[str],
    only: bool = False,
) -> None:
    """Add a second diagnosis; it alone decides on the codes of `own`, and `only` on those."""
    for code in own:
        found.pop(code, None)
        untried.pop(code, None)
    lacking = dict(second.untried)
    untried |= {code: what for code, what in lacking.items() if code in own}
    for finding in second.findings:
        if finding.code in own or not (only or finding.code in found):
            found[finding.code] = finding
    if not only:
        # What one of the two could look at has been tried.
        for code in [c for c in untried if c not in own and (c not in lacking or c in found)]:
            del untried[code]


def _account_for_noise(figures: Case, found: dict[str, Finding], untried: dict[str, str]) -> None:
    """Not seen to be slower is not yet seen to be as fast: noise must not pass for a fix."""
    plain = [row.tok_s for row in figures.measured if row.speculative is False and row.tok_s]
    drafted = [row.tok_s for row in figures.measured if row.speculative and row.tok_s]
    if not plain or not drafted:
        return
    outcome = compare(plain[0], drafted[-1], pooled_cv=ASSUMED_CV, margin=MARGIN, say_repeats=False)
    if outcome.verdict in ("improvement", "no material change"):
        return
    if outcome.low is not None and outcome.low >= 1 - MARGIN:
        return
    for code in SLOWNESS_CODES - found.keys():
        untried[code] = f"more repeats: {outcome.sentence}"


def _account_for_source(
    own: Case,
    facts: RunFacts,
    found: dict[str, Finding],
    untried: dict[str, str],
    patched: bool,
) -> None:
    """Where the engine's source is not the release's, drop what only the release's rules say."""
    missing = ""
    if facts.reference_engine:
        missing = _reference_capture(own)
        found.pop("aux-layer-not-capturable", None)
        if "aux-layer-mismatch" not in found and missing:
            untried["aux-layer-mismatch"] = missing
        return
    if patched:
        for code in CAPTURE_CODES:
            found.pop(code, None)
            untried[code] = "the capture's source is patched: a log that says what was captured"


def capture_patched(found: Dossier, facts: RunFacts) -> bool:
    """Whether the run, or one that it follows or repeats, changed the source that captures."""
    row: RunFacts | None = facts
    passed: set[int] = set()
    while row is not None and row.run.pk not in passed:
        if any(
            change.kind == ConfigChange.Kind.PATCH and change.key.endswith(CAPTURE_SOURCES)
            for change in row.changes
        ):
            return True
        passed.add(row.run.pk)
        row = found.run(row.run.repeats_run_id or row.run.follows_id)
    return False


def captured_layers(found: Dossier, facts: RunFacts, own: Case) -> tuple[int, ...] | None:
    """Hidden states that feed the draft (0: the embedding), None where that is not sure."""
    if facts.reference_engine:
        return reference_layers(own)
    layers = layers_of(own)
    if capture_patched(found, facts) or layers is None or layers.capture is None:
        return None
    chosen = layers.capture
    return None if chosen.not_capturable else tuple(chosen.hidden_states_indices)


def reference_layers(own: Case) -> tuple[int, ...] | None:
    """The hidden states the reference engine captures for the case's draft; None if unknown.

    It takes -1 for the embedding, which the releases it is modelled on do only with a patch.
    """
    if own.draft is None:
        return None
    ids = DraftConfig.from_dict(own.draft.raw).aux_layer_ids
    layers = own.target.raw.get("num_hidden_layers") if own.target else None
    if ids is None or not isinstance(layers, int):
        return None
    try:
        return capture.resolve(
            list(ids), own.draft.source, num_layers=layers, num_aux=len(ids)
        ).hidden_states
    except capture.CaptureError:
        return None


def _reference_capture(own: Case) -> str:
    """What is missing to say that the draft is fed as in training; empty when it is."""
    features: Any = own.training.features
    if features is None:
        return "training.features in the investigation's notes"
    layers = reference_layers(own)
    if layers is None:
        return "the draft's and the target's config.json"
    if layers != aux_layers.normal(features):
        return "captured layers differ from the training's in a way no rule describes"
    return ""
