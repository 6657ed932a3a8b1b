"""The Kimi-K2.5 pattern measured again, on the reference engine: planned here, run by a worker.

What it will show is not written here: hypotheses, predictions and checks are registered before the
runs, as anybody would register their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from experiments import dispatch, lifecycle
from experiments.models import Hypothesis, Investigation, Run
from specdebug.reference import variants
from workers.plan import Workload

SOURCE = "replay:kimi-k2.5"
TITLE = "The Kimi-K2.5 pattern, replayed on the reference engine"
QUESTION = (
    "Does the pattern of the Kimi-K2.5 investigation show on a small pair of models that runs "
    "anywhere, and does speculation win in the end?"
)
CONTEXT = (
    "A 12-layer target and an EAGLE-3 draft, both small, on this machine's CPU behind SGLang's "
    "flags, log lines and routes. The draft was trained on the embedding's output and the inputs "
    "of layers 2 and 6. One folder names those layers, the other names layers the draft has never "
    "seen in these slots. **The figures are this machine's CPU's and not those of a GPU.**"
)
# What the shipped draft was trained on (docs/reference-engine.md), in the form of the notes.
FEATURES: list[str | int] = ["embed", 2, 6]
STEPS, DRAFT_TOKENS = "speculative_num_steps", "speculative_num_draft_tokens"


@dataclass(frozen=True)
class Pace:
    """The workload of each run; small ones for tests."""

    repeats: int = 3
    prompts: int = 16
    tokens: int = 96

    def workload(self) -> Workload:
        return Workload(
            repeats=self.repeats, prompts_per_repeat=self.prompts, max_new_tokens=self.tokens
        )


def start_replay(pace: Pace | None = None) -> Investigation:
    """Make the replay unless it is there, and queue those of its runs that still are drafts.

    Safe to call twice, and from two processes at once.
    """
    known = Investigation.objects.filter(source=SOURCE).first()
    if known is None:
        try:
            with transaction.atomic():
                known = _make(pace or Pace())
        except IntegrityError:  # another process was quicker
            known = Investigation.objects.get(source=SOURCE)
    for run in known.runs.filter(state=Run.State.DRAFT).order_by("number"):
        dispatch.queue_run(run)
    return known


def _make(pace: Pace) -> Investigation:
    folder = Path(settings.DATA_DIR) / "models"
    wrong = variants.write_draft(folder / "draft-wrong-layers", variants.WRONG_IDS)
    right = variants.write_draft(folder / "draft-right-layers", variants.RIGHT_IDS)
    investigation = lifecycle.create_investigation(
        title=TITLE,
        question=QUESTION,
        context=CONTEXT,
        notes={"training": {"features": FEATURES}},
        source=SOURCE,
    )
    workload = pace.workload()

    def run(title: str, draft: Path | None, steps: int, **links: Any) -> Run:
        return lifecycle.add_run(
            investigation=investigation,
            title=title,
            server_args=server_args(draft, steps),
            engine="reference",
            workload=workload,
            **links,
        )

    plain = run("No speculation: the baseline", None, 0)
    lifecycle.edit_investigation(investigation, baseline=plain)
    first = _hypothesis(
        investigation,
        "With speculation on and 16 draft tokens asked for, throughput beats the baseline",
        "Sixteen tokens are drafted cheaply and verified in one step of the target.",
        baseline=plain,
        effective={DRAFT_TOKENS: 16},
    )
    one = run(
        "Speculation on: 1 step, top-k 1, 16 draft tokens",
        wrong,
        1,
        hypothesis=first,
        baseline=plain,
        follows=plain,
    )
    second = _hypothesis(
        investigation,
        "The engine shortens the chain; with 15 steps it is 16 long and throughput rises",
        "With top-k 1 the draft tokens follow from the steps, so the steps have to be raised.",
        baseline=one,
        effective={STEPS: 15, DRAFT_TOKENS: 16},
        follows_from=first,
    )
    deep = run(
        "15 steps, so the chain is 16 long",
        wrong,
        15,
        hypothesis=second,
        baseline=plain,
        follows=one,
    )
    third = _hypothesis(
        investigation,
        "The draft is fed other layers than in training; with the right ones more is accepted",
        "Features in slots where training had others make the draft guess worse.",
        baseline=deep,
        metric="accept_len",
        effective={DRAFT_TOKENS: 16},
        layers=FEATURES,
        follows_from=second,
    )
    run(
        "The draft fed with the layers it was trained on",
        right,
        15,
        hypothesis=third,
        baseline=plain,
        follows=deep,
    )
    return investigation


def _hypothesis(
    investigation: Investigation,
    claim: str,
    mechanism: str,
    *,
    baseline: Run,
    effective: dict[str, int],
    metric: str = "tok_s",
    layers: list[str | int] | None = None,
    follows_from: Hypothesis | None = None,
) -> Hypothesis:
    """A hypothesis with its prediction (the metric rises) and its applied checks."""
    row = lifecycle.add_hypothesis(
        investigation=investigation,
        claim=claim,
        mechanism=mechanism,
        links=[("follows-from", follows_from)] if follows_from else [],
    )
    lifecycle.register_prediction(hypothesis=row, baseline=baseline, metric=metric)
    for key, value in effective.items():
        lifecycle.add_applied_check(
            hypothesis=row, kind="effective-equals", key=key, expected=value
        )
    if layers:
        lifecycle.add_applied_check(hypothesis=row, kind="captured-layers", expected=layers)
    return row


def server_args(draft: Path | None, steps: int) -> list[str]:
    """The engine's flags: the shipped target, and `draft` with `steps` and 16 draft tokens."""
    common = ["--model-path", str(variants.TARGET), "--decode-log-interval", "10"]
    if draft is None:
        return common
    return [
        *common,
        "--speculative-algorithm",
        "EAGLE3",
        "--speculative-draft-model-path",
        str(draft),
        "--speculative-num-steps",
        str(steps),
        "--speculative-eagle-topk",
        "1",
        "--speculative-num-draft-tokens",
        "16",
    ]
