"""Checks of output that no figure can rest on: it loops, or the release computes it wrong."""

from __future__ import annotations

from specdebug.diagnosis.arguments import (
    DRAFT_TOKENS,
    NUM_STEPS,
    TOPK,
    Setup,
    release_knowledge,
    setups,
)
from specdebug.diagnosis.checks import accepting
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.findings import Finding
from specdebug.sglang.flags import Value
from specdebug.sglang.overrides import predict
from specdebug.sglang.releases import Release

_UNCHECKED = "paged_topk_unchecked_window"
_BACKEND = "attention_backend"
_KEYS = ("speculative_algorithm", NUM_STEPS, TOPK, DRAFT_TOKENS, "page_size", _BACKEND)
_FLASHINFER_REFUSED = Release.parse("0.5.1")


def degenerate_output(case: Case) -> Finding | None:
    """Results that the release is known to compute wrong, else output that loops."""
    wrong = (_results_wrong(setup) for setup in setups(case))
    return next((found for found in wrong if found), None) or accepting.degenerate_output(case)


def _results_wrong(setup: Setup) -> Finding | None:
    """A tree over pages of several tokens where the release neither changes nor refuses it.

    Up to 0.4.8 topk becomes 1, from 0.5.2 on the engine refuses it; its own reason is that the
    results are wrong. Fires only where every possible release lies between.
    """
    if setup.engine == "vllm" or setup.number(TOPK) in (None, 1):
        return None
    facts = {k: setup.logged(k) or setup.asked(k) for k in _KEYS}
    values: dict[str, Value] = {k: f.value for k, f in facts.items() if f is not None}
    chosen = values.get(_BACKEND) is None
    if chosen:
        values[_BACKEND] = "triton"  # 0.5.1 refuses one backend, flashinfer: see below
    known = release_knowledge(setup)
    for release in known.possible:
        if _UNCHECKED not in {note.rule for note in predict(values, release=release).notes}:
            return None
    if not known.possible:
        return None
    unless = ""
    if chosen and known.possible[-1] >= _FLASHINFER_REFUSED:
        unless = " (0.5.1 refuses it if the attention backend it chooses is flashinfer)"
    return Finding(
        "degenerate-output",
        "high",
        "likely",
        f"{str(known)[0].upper()}{str(known)[1:]} lets topk {setup.number(TOPK)} with page size "
        f"{setup.number('page_size')} through, neither changed nor refused{unless}: releases from "
        "0.5.2 on refuse the combination as unstable, with incorrect results.",
        tuple(f.evidence() for k in (TOPK, "page_size", _BACKEND) if (f := facts[k]) is not None),
        "Use --page-size 1 or --speculative-eagle-topk 1.",
        "the same prompts, greedily, with --page-size 1: the outputs must be the same",
    )
