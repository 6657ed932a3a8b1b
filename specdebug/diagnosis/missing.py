"""The single most valuable input a case lacks; suggests no experiment (see advice.py)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specdebug.diagnosis.arguments import NUM_STEPS, draft_config, release_knowledge, setups
from specdebug.diagnosis.checks.accepting import AFTER_RESTART
from specdebug.diagnosis.checks.asked import ADJUSTED
from specdebug.diagnosis.checks.capture import layers_of
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.figures import baseline, cost_points, runs, speculative_runs
from specdebug.diagnosis.findings import Finding
from specdebug.diagnosis.profile import profile

__all__ = ["Missing", "most_valuable"]


@dataclass(frozen=True, slots=True)
class Missing:
    """An input that would settle most, and why."""

    input: str
    why: str


_BY_POSITION = "acceptance by position (spec_accept_histogram of /generate, 0.5.9 and later)"
ACCEPTANCE_CODES = {
    "acceptance-below-training",
    "acceptance-below-reference",
    "acceptance-collapses",
    "first-position-low",
    "aux-layer-mismatch",
    "dead-draft",
}


def most_valuable(case: Case, findings: Iterable[Finding]) -> Missing | None:
    """The first of an ordered list of gaps; None when none of them is open.

    First comes what changes a verdict, then what splits causes, then what firms figures up.
    """
    found = list(findings)
    for rule in (
        _nothing,
        _accept_len,
        _release,
        _measure,
        _unreal,
        _dead,
        _adjusted,
        _baseline,
        _features,
        _positions,
    ):
        answer = rule(case, found)
        if answer is not None:
            return answer
    for rule in (_depth, _overhead, _throughput, _command, _draft_config, _repeats, _deeper):
        answer = rule(case, found)
        if answer is not None:
            return answer
    return None


def _nothing(case: Case, found: list[Finding]) -> Missing | None:
    if setups(case) or runs(case) or case.draft or case.positions:
        return None
    if case.header is not None:
        return Missing(
            "the draft's config.json", "its tensors can only be judged against what it promises"
        )
    if case.target is not None:
        return Missing(
            "the draft's config.json and the launch command",
            "the target alone says nothing about speculation",
        )
    known = case.baseline_tok_s or case.training.val_accuracy or case.training.features
    why = "notes alone say nothing about a server" if known else "nothing usable was given"
    return Missing("the server log from its first line", why)


def _accept_len(case: Case, found: list[Finding]) -> Missing | None:
    spec = speculative_runs(case)
    blind = [r for r in spec if r.tok_s and r.accept_len is None]
    if not blind or any(r.origin == "log" for r in spec):
        return None  # beside a log a client's row needs no accept length of its own
    run = blind[-1]
    changed = f" ({', '.join(run.changes)})" if run.changes else ""
    return Missing(
        f"the accept length of {run.label}",
        f"its throughput is known{changed}, and without the accept length nobody can say whether "
        "acceptance or the step time changed",
    )


def _release(case: Case, found: list[Finding]) -> Missing | None:
    named = [f for f in found if "release" in f.settled_by and f.confidence != "certain"]
    known = [release_knowledge(s).release for s in setups(case)]
    if case.engine_version is not None or any(known):
        return None
    if named:
        codes = ", ".join(f.code for f in named)
        return Missing("the engine's release", f"it decides {codes}")
    draft = draft_config(case)
    if draft is None or not draft.is_eagle3 or not draft.aux_layer_ids or setups(case):
        return None
    if case.target is None:
        return Missing(
            "the target's config.json", "its architecture and depth decide what the layer ids mean"
        )
    layers = layers_of(case)
    if layers is None or layers.capture is not None:
        return None
    return Missing("the engine's release", "it decides which layers the draft is fed")


def _measure(case: Case, found: list[Finding]) -> Missing | None:
    if runs(case) or case.positions:
        return None
    if case.draft is not None and not setups(case) and case.training.features is None:
        return None  # files alone: whether they fit the training comes before how they serve
    if any(b.notices for b in case.boots):
        return None
    return Missing(
        "decode lines of the server log under load",
        "accept length and step time are in them, and nothing measured is known yet",
    )


def _unreal(case: Case, found: list[Finding]) -> Missing | None:
    codes = {f.code for f in found if f.severity != "info"}
    if "simulated-acceptance" in codes:
        return Missing(
            "the same run without SGLANG_SIMULATE_ACC_LEN", "every acceptance figure is made up"
        )
    if "prompts-not-representative" in codes:
        return Missing(
            "the accept length on real prompts", "on random tokens it says nothing about the draft"
        )
    return None


CAUSES_OF_DEATH = {
    "wrong-algorithm-for-draft",
    "draft-weights-missing",
    "draft-vocab-map",
    "fc-width-mismatch",
    "aux-layer-mismatch",
}


def _dead(case: Case, found: list[Finding]) -> Missing | None:
    codes = {f.code for f in found}
    if "dead-draft" not in codes:
        return None
    if any(f.code == "dead-draft" and f.settled_by == AFTER_RESTART for f in found):
        return Missing(AFTER_RESTART, "dead again means files or hardware, alive means the state")
    if codes & CAUSES_OF_DEATH:
        return Missing(
            "a log of the server after the cause is removed",
            "with a dead draft no other figure means anything",
        )
    for lacking, what in (
        (case.draft is None, "the draft's config.json"),
        (case.header is None, "the names and shapes in the draft's safetensors header"),
        (case.training.features is None, "the target layers the draft was trained on"),
    ):
        if lacking:
            return Missing(what, "the draft is dead and no cause is known yet")
    return None


def _adjusted(case: Case, found: list[Finding]) -> Missing | None:
    """The engine prints that line for a number it replaces and for one that nobody gave."""
    said = [n for b in case.boots for n in b.notices if ADJUSTED in n.text]
    if not said or any(s.asked_number(NUM_STEPS) is not None for s in setups(case)):
        return None
    return Missing(
        "the launch command",
        f"line {said[0].line} of {said[0].source} says that the draft tokens were adjusted: "
        "either another number was asked for and is not in force, or none was asked for; "
        "only the command tells which",
    )


def _baseline(case: Case, found: list[Finding]) -> Missing | None:
    if baseline(case) is not None or not any(r.tok_s for r in speculative_runs(case)):
        return None
    return Missing(
        "the same load without speculation",
        "whether the draft wins at all, and the break-even accept length, need the plain run",
    )


def _features(case: Case, found: list[Finding]) -> Missing | None:
    draft = draft_config(case)
    if draft is None or not draft.is_eagle3 or case.training.features is not None:
        return None
    return Missing(
        "the target layers the draft was trained on",
        "only with them can the captured layers be called right or wrong",
    )


def _positions(case: Case, found: list[Finding]) -> Missing | None:
    if not any(f.code in ACCEPTANCE_CODES for f in found):
        return None
    known = profile(case)
    if known is not None and known.measured:
        return None
    return Missing(
        _BY_POSITION,
        "it tells wrong features (first position low) from a broken recurrent step (later low)",
    )


def _depth(case: Case, found: list[Finding]) -> Missing | None:
    slower = any(
        f.code in ("slower-than-baseline", "below-break-even", "speculation-cannot-win")
        for f in found
    )
    if not slower or len(cost_points(case)) > 1:
        return None
    return Missing(
        "a run at another num_steps with everything else equal",
        "it splits the step time into draft forwards and a fixed part",
    )


def _overhead(case: Case, found: list[Finding]) -> Missing | None:
    if not any(f.code == "step-overhead-unexplained" for f in found):
        return None
    return Missing(
        "step_time_dict of /server_info (start with SGLANG_RECORD_STEP_TIME=1)",
        "it says which part of the step the unexplained time is in",
    )


def _throughput(case: Case, found: list[Finding]) -> Missing | None:
    spec = speculative_runs(case)
    known = case.positions or any(r.accept_len for r in spec)
    if not known or any(r.tok_s for r in spec):
        return None
    return Missing(
        "the throughput of the same load, with and without speculation",
        "acceptance alone does not tell whether the draft wins",
    )


def _command(case: Case, found: list[Finding]) -> Missing | None:
    if case.launches or (not case.boots and not case.states):
        return None
    if any(s.engine == "vllm" for s in setups(case)):
        return Missing("the launch command", "it names the method and num_speculative_tokens")
    return Missing("the launch command", "asked and effective arguments cannot be compared")


def _draft_config(case: Case, found: list[Finding]) -> Missing | None:
    eagle3 = any(s.algorithm == "EAGLE3" for s in setups(case))
    if case.draft is not None or not eagle3:
        return None
    return Missing("the draft's config.json", "layers, vocabulary and context were not checked")


def _repeats(case: Case, found: list[Finding]) -> Missing | None:
    if not any(f.code == "too-few-samples" for f in found):
        return None
    return Missing(
        "five interleaved repeats of each run", "single figures leave small differences open"
    )


def _deeper(case: Case, found: list[Finding]) -> Missing | None:
    known = profile(case)
    if not speculative_runs(case) or (known is not None and known.measured):
        return None
    return Missing(_BY_POSITION, "what another num_steps would give can be computed from it")
