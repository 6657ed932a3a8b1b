"""Checks of arguments a release refuses: predicted from the command, or read in the log."""

from __future__ import annotations

from collections.abc import Sequence

from specdebug.diagnosis.arguments import (
    DRAFT_TOKENS,
    NUM_STEPS,
    TOPK,
    Setup,
    prediction,
    release_knowledge,
    setups,
)
from specdebug.diagnosis.checks.asked import flag_evidence
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.findings import Confidence, Finding
from specdebug.sglang.overrides import PERHAPS, Prediction, Reading
from specdebug.sglang.rules import printing


def arguments_rejected(case: Case) -> Finding | None:
    """The release refuses or crashes on the combination of arguments: predicted, or logged."""
    logged = _rejection_logged(case)
    if logged is not None:
        return logged
    for setup in setups(case):
        guess = prediction(setup)
        if guess is None or (setup.boot is not None and (setup.boot.ready or setup.boot.stretches)):
            continue
        found = _refused(setup, guess) or _perhaps(setup, guess)
        if found is not None:
            return found
    return None


_KEYS = (NUM_STEPS, TOPK, DRAFT_TOKENS, "page_size", "attention_backend", "pp_size")


def _refused(setup: Setup, guess: Prediction) -> Finding | None:
    """What the release, or each release that is possible, refuses."""
    refused = list(guess.rejections)
    where = str(release_knowledge(setup))
    confidence: Confidence = "certain" if guess.release_known else "likely"
    if guess.readings:
        refusing = [r for r in guess.readings if r.rejections]
        refused = list(refusing[-1].rejections) if refusing else []
        if refusing and len(refusing) < len(guess.readings):
            # Nobody starts an old release today: what the newest refuses will not start.
            newest = refusing[-1] is guess.readings[-1]
            confidence = "likely" if newest else "possible"
            where = " and ".join(_spans(guess.readings))
        elif refusing:
            where = "every release read"
    if not refused:
        return None
    first, many = refused[0], where.startswith("releases")
    return Finding(
        "arguments-rejected",
        "info" if confidence == "possible" else "critical",
        confidence,
        f"{where[0].upper()}{where[1:]} refuse{'' if many else 's'} these arguments with "
        f"{first.error}: {first.why}",
        tuple(flag_evidence(setup, *_KEYS)),
        first.fix,
        "" if confidence == "certain" else "the engine's release",
    )


def _perhaps(setup: Setup, guess: Prediction) -> Finding | None:
    """A refusal that hangs on a value the engine chooses by itself, such as the backend."""
    notes = [n for n in guess.notes if n.why.startswith(PERHAPS)]
    if not notes:
        return None
    why = notes[0].why.removeprefix(PERHAPS).strip()
    return Finding(
        "arguments-rejected",
        "info",
        "possible",
        f"{str(release_knowledge(setup)).capitalize()} may refuse these arguments, by the "
        f"attention backend it chooses: {why}",
        tuple(flag_evidence(setup, *_KEYS)),
        notes[0].fix or "Name the attention backend on the command line.",
        "the attention backend in force (the server_args line of the log)",
    )


def _spans(readings: Sequence[Reading]) -> list[str]:
    """The last three unbroken runs of releases that refuse."""
    out: list[str] = []
    first: Reading | None = None
    for reading, following in zip(readings, [*readings[1:], None], strict=True):
        if not reading.rejections:
            first = None
            continue
        first = first or reading
        if following is None or not following.rejections:
            out.append(f"releases {first.since} to {reading.until}")
    return out[-3:]


def _rejection_logged(case: Case) -> Finding | None:
    """The error of a known refusal in the log of a server that never served."""
    for setup in setups(case):
        boot = setup.boot
        if boot is None or boot.ready or boot.stretches:
            continue
        for notice in boot.notices:
            if notice.kind in ("argument-warning", "model-load"):
                continue
            for line in notice.text.splitlines():
                refusals = [r for r in printing(line.strip()) if r.kind == "reject"]
                if not refusals:
                    continue
                first = refusals[0]
                bare = line.strip() == first.error
                return Finding(
                    "arguments-rejected",
                    "critical",
                    "likely" if bare else "certain",
                    f"The server stopped while reading its arguments with {first.error}: "
                    f"{first.why}",
                    (notice.evidence(), *flag_evidence(setup, NUM_STEPS, TOPK, DRAFT_TOKENS)),
                    first.fix,
                    "the launch command" if bare else "",
                )
    return None
