"""Checks of layer ids a release cannot capture: by the config, or by how the server failed."""

from __future__ import annotations

from specdebug.diagnosis.checks.capture import (
    Layers,
    advice,
    ids_evidence,
    layers_of,
)
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.findings import Evidence, Finding
from specdebug.eagle.aux_layers import Capture
from specdebug.sglang.patterns import regex
from specdebug.sglang.releases import Release

_SHAPES = regex(r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)")


def aux_layer_not_capturable(case: Case) -> Finding | None:
    """An id the release never reaches, from the config or from how the server failed."""
    layers = layers_of(case)
    crash = _capture_crash(case)
    bad: list[tuple[Release, Release, Capture]] = []
    if layers is not None:
        bad = [(a, b, c) for a, b, c in layers.by_release if c.not_capturable]
        if not bad and (twice := _twice(case, layers)) is not None:
            return twice
    if not bad and crash is None:
        return None
    if bad and layers is not None:
        first, last, capture = bad[-1]
        everywhere = len(bad) == len(layers.by_release)
        ids = ", ".join(map(str, capture.not_capturable))
        sure = everywhere and (layers.knowledge.release is not None or crash is not None)
        span = f"release {first}" if first == last else f"releases {first} to {last}"
        where = str(layers.knowledge) if everywhere else span
        # Of an unknown release only what newer ones do is a fault; older ones are worth a note.
        old_only = not everywhere and crash is None and bad[-1] != layers.by_release[-1]
        happens = f"; the server then raises {capture.errors[0]}" if capture.errors else ""
        return Finding(
            "aux-layer-not-capturable",
            "info" if old_only else "critical",
            "certain" if sure else "likely" if everywhere else "possible",
            f"Layer id {ids} of {list(layers.ids or ())} cannot be captured on {where} "
            f"(target of {layers.num_layers} layers){happens}."
            if layers.num_layers_known
            else f"Layer id {ids} of {list(layers.ids or ())} cannot be captured on {where}"
            f"{happens}.",
            (*ids_evidence(case, layers), *([crash[1]] if crash else [])),
            advice(case, layers, layers.knowledge.release or last)
            or "Write ids of layers that this release captures; which of them are right depends on "
            "the layers that training used.",
            "" if sure else "the engine's release",
        )
    assert crash is not None  # noqa: S101 (one of the two is there)
    return Finding(
        "aux-layer-not-capturable",
        "critical",
        "likely",
        crash[0],
        (crash[1],),
        "Compare eagle_aux_hidden_state_layer_ids with the layers this release can capture.",
        "the draft's and the target's config.json",
    )


def _twice(case: Case, layers: Layers) -> Finding | None:
    """An id written twice is captured once, and fc then lacks an input."""
    ids = layers.ids or ()
    repeated = sorted({i for i in ids if ids.count(i) > 1})
    if not repeated or not layers.by_release:
        return None
    _, last, capture = layers.by_release[-1]
    happens = f"; the server then raises {capture.errors[0]}" if capture.errors else ""
    return Finding(
        "aux-layer-not-capturable",
        "critical",
        "certain",
        f"Ids {list(ids)} name {', '.join(map(str, repeated))} more than once, and a layer is "
        f"captured once: {len(set(ids))} of {len(ids)} states{happens}.",
        tuple(ids_evidence(case, layers)),
        advice(case, layers, layers.knowledge.release or last)
        or "Write the ids of the layers that training used, each once.",
    )


def _capture_crash(case: Case) -> tuple[str, Evidence] | None:
    """A failure that only a missing hidden state explains."""
    for boot in case.boots:
        for notice in boot.notices:
            found = _SHAPES.search(notice.text)
            if found:
                have, want = int(found.group(2)), int(found.group(3))
                hidden = want // 3
                if want % 3 == 0 and have in (hidden, 2 * hidden):
                    said = (
                        f"fc expects {want} = 3 x {hidden} inputs and got {have}: "
                        f"{have // hidden} of 3 hidden states were captured."
                    )
                    return said, notice.evidence()
            if "'Tensor' and 'NoneType'" in notice.text and "unsupported operand" in notice.text:
                said = (
                    "The target adds a residual that does not exist yet: the input of its first "
                    "layer was to be captured, which this release cannot do."
                )
                return said, notice.evidence()
            if notice.fields.get("captured"):
                have_of = f"{notice.fields['captured']} of {notice.fields.get('expected', '3')}"
                return f"The server captured {have_of} hidden states.", notice.evidence()
    return None
