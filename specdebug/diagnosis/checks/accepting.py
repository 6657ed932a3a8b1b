"""Checks of acceptance: dead, below what was promised, by position, over context, over ranks."""

from __future__ import annotations

import math

from specdebug.diagnosis.checks.prompts import RANDOM, random_prompts
from specdebug.diagnosis.decode import (
    busy_indices,
    interval_of,
    line_evidence,
)
from specdebug.diagnosis.facts import Boot, Case, Stretch
from specdebug.diagnosis.figures import Run, most_in_a_step, speculative_runs
from specdebug.diagnosis.findings import Evidence, Finding
from specdebug.diagnosis.profile import profile
from specdebug.diagnosis.reference import reference_for
from specdebug.measure import acceptance

DEAD = 1.05
DEAD_LINES = 5
DEAD_DRAFTS = 200
SHORT_OF_TRAINING = 0.85


def dead_draft(case: Case) -> Finding | None:
    """Accept length at most 1.05 over 5 busy lines or 200 drafts."""
    for boot in case.boots:
        for stretch in boot.stretches:
            finding = _dead_stretch(boot, stretch)
            if finding is not None:
                return finding
    for run in speculative_runs(case):
        if run.accept_len is None or run.accept_len > DEAD or run.origin == "log":
            continue
        if run.drafts is None and any(b.stretches for b in case.boots):
            continue  # an average without a count beside a log: the log decides
        if run.dataset and run.dataset.lower() in RANDOM and run.accept_len > 1.02:
            continue  # random prompts: close to nothing is what a healthy draft gets there
        if run.drafts is not None and run.drafts < DEAD_DRAFTS:
            continue
        return _dead(
            f"{run.label}: accept length {run.accept_len:.2f}"
            + (f" over about {run.drafts} drafts" if run.drafts else ""),
            run.evidence,
            sure=run.drafts is not None,
        )
    for p in case.positions:
        if p.drafts >= DEAD_DRAFTS and p.accept_len is not None and p.accept_len <= DEAD:
            return _dead(
                f"{p.source}: accept length {p.accept_len:.2f} over {p.drafts} drafts",
                (Evidence(p.source, p.line, p.text),),
            )
    return None


def dead_run(stretch: Stretch, interval: int = 40) -> tuple[list[int], bool] | None:
    """Indices of the longest run of dead busy lines (five, or 200 drafts if all are dead), and
    whether a healthy line came before.

    A dead beginning that comes to life later is no dead draft unless it lasts 20 lines.
    """
    busy = [i for i in busy_indices(stretch) if not math.isnan(stretch.accept_len[i])]
    alive = [stretch.accept_len[i] > DEAD for i in busy]
    best: tuple[int, int] = (0, 0)
    start = 0
    for k in range(len(busy) + 1):
        if k == len(busy) or alive[k]:
            if k - start > best[1] - best[0]:
                best = (start, k)
            start = k + 1
    first, last = best
    dead = busy[first:last]
    drafts = (
        sum(stretch.drafts[i] for i in dead)
        if stretch.drafts
        else sum(stretch.running[i] for i in dead) * interval
    )
    if last - first < DEAD_LINES and (any(alive) or drafts < DEAD_DRAFTS):
        return None
    before, after = any(alive[:first]), any(alive[last:])
    if not before and after and last - first < 20:
        return None
    return busy[first:last], before


def _dead_stretch(boot: Boot, stretch: Stretch) -> Finding | None:
    found = dead_run(stretch, interval_of(boot))
    if found is None:
        return None
    lines, before = found
    lengths = [stretch.accept_len[i] for i in lines]
    others = [s for s in boot.stretches if s is not stretch]
    dead = sum(dead_run(s, interval_of(boot)) is not None for s in others)
    rank = f" on rank {stretch.rank}" if stretch.rank and others else ""
    if dead:
        rank += f" and likewise on {dead} of the {len(others)} others"
    statement = f"Accept length {max(lengths):.2f} or less in {len(lines)} busy decode lines{rank}"
    where, fix, settled = ", from the first one on", _FILES, ""
    if before:
        first = stretch.lines[lines[0]]
        where = (
            f", from line {first} on and after a healthy stretch: a poisoned state or a change "
            "while running, not a wrong checkpoint"
        )
        fix = (
            f"Restart the server, and look for what happened at {boot.source}:{first}: new "
            "weights, a loaded adapter, an aborted or retracted request, an error."
        )
        settled = AFTER_RESTART
    elif rank and not dead:
        where = f" while {_ranks(len(others))}: this rank's weights or state, not the checkpoint"
        fix = (
            f"Restart the server and see whether rank {stretch.rank} is the dead one again; take "
            "its GPU and node out of service if it is. Never average over the ranks."
        )
        settled = AFTER_RESTART
    evidence = (line_evidence(boot, stretch, lines[0]), line_evidence(boot, stretch, lines[-1]))
    return _dead(f"{statement}{where}", evidence, fix, settled)


# What tells a state that was spoilt while running from files that were wrong from the start.
AFTER_RESTART = "decode lines after a restart with the same files"
_FILES = (
    "Check in this order: algorithm EAGLE3 for an EAGLE-3 draft, tensors missing from the "
    "checkpoint, the vocabulary map, the captured layers."
)


def _ranks(count: int) -> str:
    return "the other rank accepts" if count == 1 else f"the {count} others accept"


def _dead(
    statement: str,
    evidence: tuple[Evidence, ...],
    fix: str = _FILES,
    settled: str = "",
    *,
    sure: bool = True,
) -> Finding:
    return Finding(
        "dead-draft",
        "critical",
        "certain" if sure else "likely",
        f"{statement}: no draft token is accepted.",
        evidence,
        fix,
        settled if sure else "the number of verifications behind the figure",
    )


def acceptance_below_training(case: Case) -> Finding | None:
    """Accept length or first position clearly below what the training accuracy promises."""
    accuracy = case.training.val_accuracy
    if accuracy is None or random_prompts(case):
        return None
    short: list[str] = []
    evidence: list[Evidence] = [
        Evidence(case.training.source, None, f"training.val_accuracy: {accuracy:g}")
    ]
    for run in speculative_runs(case):
        if run.accept_len is None or not run.num_steps or not run.chain:
            continue
        promised = acceptance.iid_accept_len(accuracy, run.num_steps)
        if run.accept_len < SHORT_OF_TRAINING * promised:
            short.append(
                f"{run.label}: accept length {run.accept_len:.2f} at num_steps {run.num_steps}, "
                f"{promised:.2f} promised"
            )
            evidence += run.evidence
    found = profile(case)
    part = ""
    if found is not None and found.conditional:
        first = found.conditional[0]
        rest = found.conditional[1:]
        if first < accuracy - 0.05:
            short.append(f"first position {first:.2f} against an accuracy of {accuracy:.3f}")
            evidence += found.evidence
            part = "The first position is short, which points at the features the draft is fed. "
        if rest and min(rest) < 0.6 * first:
            lead = (
                "The later positions are short too"
                if part
                else ("The first position is fine and the later ones are short")
            )
            part += f"{lead}, which points at the recurrent step. "
    if not short:
        return None
    return Finding(
        "acceptance-below-training",
        "high",
        "likely",
        f"Acceptance is below what validation accuracy {accuracy:.3f} promises as an independent "
        "chain: " + "; ".join(short) + ".",
        tuple(dict.fromkeys(evidence)),
        part + "Compare the captured layers with those of the training, and the training's unroll "
        "with num_steps.",
        "acceptance by position (spec_accept_histogram of /generate)"
        if found is None or not found.measured
        else "the features used in training",
    )


def acceptance_below_reference(case: Case) -> Finding | None:
    """Below a public curve for the same target by more than 10 %."""
    reference = reference_for(case)
    if reference is None or random_prompts(case) or dead_draft(case) is not None:
        return None  # an average over dead lines says nothing about the draft
    below: list[str] = []
    evidence: list[Evidence] = []
    for run in speculative_runs(case):
        if run.accept_len is None or not run.num_steps or not run.chain:
            continue
        expected = reference.at(run.num_steps)
        if expected is not None and run.accept_len < 0.9 * expected[0]:
            low, high = expected
            curve = f"{low:.2f} to {high:.2f}" if high - low > 0.005 else f"{low:.2f}"
            below.append(
                f"{run.label} {run.accept_len:.2f} at num_steps {run.num_steps} against "
                f"{curve} ({100 * (run.accept_len / high - 1):.0f} %)"
            )
            evidence += run.evidence
    if not below:
        return None
    return Finding(
        "acceptance-below-reference",
        "info",
        "possible",
        f"Below a public curve for {reference.target} ({reference.caveat}): "
        + "; ".join(below)
        + ".",
        tuple(evidence),
        "A flag, not a proof: compare drafts on the same prompts before blaming one.",
        "the same prompts with a published draft of this target",
    )


def acceptance_collapses(case: Case) -> Finding | None:
    """Healthy first position, and less than 0.6 of it afterwards."""
    found = profile(case)
    after = found.after_first if found is not None else None
    if found is None or after is None:
        return None
    first = found.conditional[0]
    if first < 0.5 or after >= 0.6 * first:
        return None
    if found.measured and found.drafts and found.drafts * first < 30:
        return None
    how = (
        f"by position ({found.positions.formula})"
        if found.measured and found.positions
        else f"from {_run_named(found.first_run)} and {_run_named(found.deep_run)}"
    )
    return Finding(
        "acceptance-collapses",
        "high",
        "likely" if found.measured else "possible",
        f"The first draft token is accepted at {first:.2f}, later ones at about {after:.2f} "
        f"({how}).",
        found.evidence,
        "Suspects: the hidden state fed back (before or after the norm), the draft's KV cache or "
        "positions, a training without multi-step unroll. Wrong layers lower the first position "
        "instead.",
        "a run with the hidden state fed back as in training, or the training's unroll depth"
        if found.measured
        else "acceptance by position (spec_accept_histogram of /generate)",
    )


def _run_named(run: Run | None) -> str:
    if run is None or run.accept_len is None:
        return "another run"
    return f"{run.label} ({run.accept_len:.2f} at num_steps {run.num_steps})"


def first_position_low(case: Case) -> Finding | None:
    """First position between 0.02 and 0.20: wrong features or a shift by one."""
    found = profile(case)
    if found is None or not found.conditional or random_prompts(case):
        return None
    first = found.conditional[0]
    enough = found.drafts >= DEAD_DRAFTS or not found.measured
    if not 0.02 <= first <= 0.20 or not enough:
        return None
    return Finding(
        "first-position-low",
        "high",
        "likely" if found.measured else "possible",
        f"The first draft token is accepted at {first:.3f} only"
        + (f" ({found.drafts} drafts)." if found.drafts else "."),
        found.evidence,
        "The first position sees the target's features and no recurrence: compare the captured "
        "layers, their order and a shift by one with the training.",
        "the features used in training, or the probe of the draft",
    )


def degenerate_output(case: Case) -> Finding | None:
    """More than 95 % of what a step can yield is accepted, or an output repeats one token."""
    for p in case.positions:
        if p.outputs_repeat:
            return Finding(
                "degenerate-output",
                "medium",
                "certain",
                f"{p.source}: an output ends in a loop of one or two tokens, which any draft "
                "predicts.",
                (Evidence(p.source, p.line, p.text),),
                "Measure acceptance on prompts whose answers do not loop.",
            )
    for run in speculative_runs(case):
        most = most_in_a_step(run)
        if run.accept_len is None or most is None or most < 2:
            continue
        if not run.chain and run.num_steps and run.num_steps < 2:
            continue  # one of several first tokens is often right
        if run.accept_len <= 0.95 * most or (run.drafts is not None and run.drafts < 50):
            continue
        return Finding(
            "degenerate-output",
            "medium",
            "likely" if run.chain else "possible",
            f"{run.label}: accept length {run.accept_len:.2f} of at most {most}: the target is "
            "probably looping, or the prompts repeat.",
            run.evidence,
            "Look at the generated text; measure on prompts with varied answers.",
            "the generated text",
        )
    return None
