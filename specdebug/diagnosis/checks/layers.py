"""Checks of which hidden states the draft is fed: mismatch, convention, defaults, capture."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from specdebug.diagnosis.arguments import (
    ReleaseKnowledge,
    draft_config,
    release_knowledge,
    setups,
    target_architecture,
    target_config,
)
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.findings import Confidence, Evidence, Finding
from specdebug.eagle import aux_layers
from specdebug.eagle.aux_layers import Capture
from specdebug.sglang.releases import KNOWN, Release

OLDEST = Release.parse("0.4.9")  # older releases read no ids from the draft config
UNKNOWN_DEPTH = 1 << 16


@dataclass(frozen=True)
class Layers:
    """What the draft config's ids capture, for the release known or for each that is possible.

    by_release: (first release, last release, capture), oldest first, neighbours that agree merged.
    """

    ids: tuple[int, ...] | None
    num_layers: int
    num_layers_known: bool
    architecture: str | None
    architecture_from: str
    knowledge: ReleaseKnowledge
    by_release: tuple[tuple[Release, Release, Capture], ...]
    everywhere: tuple[tuple[Release, Release, Capture], ...]

    @property
    def capture(self) -> Capture | None:
        """The capture, when all possible releases agree on it."""
        return self.by_release[0][2] if len(self.by_release) == 1 else None


def _by_release(
    ids: tuple[int, ...] | None, layers: int, architecture: str | None, possible: list[Release]
) -> tuple[tuple[Release, Release, Capture], ...]:
    out: list[tuple[Release, Release, Capture]] = []
    for release in possible:
        capture = aux_layers.captured(ids, layers, architecture, release)
        last = out[-1][2] if out else None
        if last and (last.inputs_of_layers, last.not_capturable) == (
            capture.inputs_of_layers,
            capture.not_capturable,
        ):
            out[-1] = (out[-1][0], release, out[-1][2])
        else:
            out.append((release, release, capture))
    return tuple(out)


@lru_cache(maxsize=16)
def layers_of(case: Case) -> Layers | None:
    """The captured layers of an EAGLE-3 draft served by SGLang; None when that cannot be said."""
    draft = draft_config(case)
    if draft is None or not draft.is_eagle3 or not draft.use_aux_hidden_state:
        return None
    found = setups(case)
    if any(s.engine == "vllm" for s in found):
        return None
    if found:
        knowledge = release_knowledge(found[0])
    else:
        version = case.engine_version
        release = Release.find(str(version.value)) if version else None
        knowledge = ReleaseKnowledge(
            release, release, release, version.evidence() if version else None
        )
    target = target_config(case)
    depth = target.num_hidden_layers if target else None
    if depth is None and draft.aux_layer_ids is None:
        return None
    architecture, source = target_architecture(case)
    ids, layers = draft.aux_layer_ids, depth or UNKNOWN_DEPTH
    possible = [r for r in knowledge.possible if r >= OLDEST]
    known = list(ReleaseKnowledge(None, OLDEST, None, None).possible)
    return Layers(
        ids,
        layers,
        depth is not None,
        architecture,
        source,
        knowledge,
        _by_release(ids, layers, architecture, possible),
        _by_release(ids, layers, architecture, known),
    )


def _ids_evidence(case: Case, layers: Layers) -> list[Evidence]:
    assert case.draft is not None  # noqa: S101 (layers_of needs it)
    text = "eagle_config.eagle_aux_hidden_state_layer_ids: "
    out = [Evidence(case.draft.source, None, text + str(list(layers.ids or ())))]
    if layers.knowledge.evidence is not None:
        out.append(layers.knowledge.evidence)
    return out


def named(indices: tuple[int, ...]) -> str:
    """Hidden-state indices as a reader knows them: 0 is the embedding."""
    return "[" + ", ".join("embedding" if i == 0 else str(i) for i in indices) + "]"


def _advice(case: Case, layers: Layers, release: Release) -> str:
    features = case.training.features
    if features is None:
        return ""
    advice = aux_layers.ids_for(features, layers.num_layers, layers.architecture, release)
    if advice.ids is not None:
        return f"With {release} write {list(advice.ids)}: {advice.why}."
    for later in KNOWN:
        newer = (
            aux_layers.ids_for(features, layers.num_layers, layers.architecture, later)
            if later > release
            else None
        )
        if newer is not None and newer.ids is not None:
            return (
                f"With {release} {advice.why}. From {later} on write {list(newer.ids)}, or patch "
                "the target's model file."
            )
    return f"With {release} {advice.why}."


def aux_layer_mismatch(case: Case) -> Finding | None:
    """The captured layers are not the trained ones; needs the training side."""
    layers, features = layers_of(case), case.training.features
    if layers is None or features is None or not layers.by_release:
        return None
    trained = aux_layers.normal(features)
    captures = [(a, b, c) for a, b, c in layers.by_release if not c.not_capturable]
    wrong = [(a, b, c) for a, b, c in captures if c.hidden_states_indices != trained]
    if not wrong or len(wrong) < len(captures):
        return None  # no capture at all, or right on some possible release: see the other checks
    _, last, capture = wrong[-1]
    served = capture.hidden_states_indices
    slots = aux_layers.compare(features, served)
    odd = [
        f"slot {s.slot} {s.verdict} (trained {_one(s.trained)}, served {_one(s.served)})"
        for s in slots
        if s.verdict != "same"
    ]
    sure = layers.knowledge.release is not None and layers.architecture is not None
    confidence: Confidence = "certain" if sure and layers.num_layers_known else "likely"
    release = layers.knowledge.release or last
    return Finding(
        "aux-layer-mismatch",
        "critical",
        confidence,
        f"Ids {list(layers.ids) if layers.ids is not None else 'missing'} make {layers.knowledge} "
        f"capture the inputs of layers {named(served)}, while the draft was trained on "
        f"{named(trained)}: " + "; ".join(odd) + ".",
        (
            *_ids_evidence(case, layers),
            Evidence(case.training.source, None, f"training.features: {list(features)}"),
        ),
        _advice(case, layers, release),
        ""
        if confidence == "certain"
        else "the engine's release and the target's config.json (known here from "
        f"{layers.architecture_from})",
    )


def _one(index: int | None) -> str:
    return "nothing" if index is None else "the embedding" if index == 0 else f"layer {index}"


def aux_layer_convention(case: Case) -> Finding | None:
    """The same file means other layers on another release, or is written for another framework."""
    layers = layers_of(case)
    if layers is None or layers.ids is None or not layers.by_release:
        return None
    features = case.training.features
    readings = [
        f"{a} to {b}: inputs of layers {named(c.hidden_states_indices)}"
        + (f" (id {c.not_capturable[0]} not captured)" if c.not_capturable else "")
        for a, b, c in layers.everywhere
    ]
    evidence = tuple(_ids_evidence(case, layers))
    distinct = {c.hidden_states_indices for _, _, c in layers.everywhere}
    if len(distinct) > 1:
        settled = (
            "the training side: which layers were fed"
            if features is None
            else "the engine's release"
            if layers.knowledge.release is None
            else ""
        )
        fix = "Pin the release beside the draft, and write the ids for that release."
        newest = layers.everywhere[-1][1]
        if features is not None:
            fix += f" {_advice(case, layers, newest)}"
        return Finding(
            "aux-layer-convention",
            "info" if features is not None and layers.knowledge.release else "medium",
            "certain" if layers.architecture_from == "target config" else "likely",
            f"Ids {list(layers.ids)} name other layers by release: " + "; ".join(readings) + ".",
            evidence,
            fix,
            settled,
        )
    style = _other_framework(layers)
    if style is not None and features is None:
        meant, served = style
        return Finding(
            "aux-layer-convention",
            "medium",
            "possible",
            f"Ids {list(layers.ids)} are the defaults of vLLM and speculators, where they mean the "
            f"inputs of layers {named(meant)}; SGLang captures {named(served)}.",
            evidence,
            f"If the draft was made for vLLM, write {[i - 1 for i in layers.ids]} for SGLang.",
            "the framework the draft was trained with, or its training features",
        )
    return None


def _other_framework(layers: Layers) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    if layers.ids is None or not layers.num_layers_known or layers.capture is None:
        return None
    try:
        defaults = aux_layers.default_ids("vllm", layers.num_layers)
    except ValueError:
        return None
    if tuple(layers.ids) != tuple(defaults):
        return None
    meant, served = aux_layers.meaning(layers.ids, "vllm"), layers.capture.hidden_states_indices
    return (meant, served) if meant != served else None


def aux_layers_defaulted(case: Case) -> Finding | None:
    """The engine finds no ids where it looks and takes its own."""
    draft = draft_config(case)
    if draft is None or case.draft is None or not draft.is_eagle3:
        return None
    if not draft.use_aux_hidden_state:
        return None
    if draft.aux_layer_ids is not None:
        return _ids_not_read(case)
    if any(s.engine == "vllm" for s in setups(case)):
        return None
    layers = layers_of(case)
    capture = layers.capture if layers is not None else None
    served = f" {named(capture.hidden_states_indices)}" if capture else ""
    written = draft.written_aux_layer_ids
    evidence = [
        Evidence(
            case.draft.source,
            None,
            f"{draft.aux_key}: {list(written)}"
            if written is not None
            else "no eagle_config.eagle_aux_hidden_state_layer_ids",
        )
    ]
    if written is None:
        right = (
            capture is not None
            and case.training.features is not None
            and aux_layers.normal(
                "embed" if f == "embed" else int(f) for f in case.training.features
            )
            == capture.hidden_states_indices
        )
        return Finding(
            "aux-layers-defaulted",
            "info" if right or case.training.features is None else "high",
            "certain",
            "The draft config names no layers, so the engine captures its default, the inputs of "
            f"layers{served or ' 2, n//2 and n-3'}.",
            tuple(evidence),
            "Write eagle_config.eagle_aux_hidden_state_layer_ids explicitly.",
            "the training side: which layers were fed" if not right else "",
        )
    meant = (
        aux_layers.captured(
            written, layers.num_layers, layers.architecture, layers.by_release[-1][1]
        )
        if layers is not None and layers.by_release and capture is not None
        else None
    )
    if (
        capture is not None
        and meant is not None
        and (meant.hidden_states_indices == capture.hidden_states_indices)
    ):
        return Finding(
            "aux-layers-defaulted",
            "info",
            "certain",
            f"Layer ids {list(written)} stand under {draft.aux_key} ({draft.aux_source}), where "
            f"the engine does not look; its default{served} happens to be the same layers.",
            tuple(evidence),
            "Move them to eagle_config.eagle_aux_hidden_state_layer_ids all the same.",
        )
    return Finding(
        "aux-layers-defaulted",
        "high",
        "certain",
        f"Layer ids {list(written)} stand under {draft.aux_key} ({draft.aux_source}), where the "
        f"engine does not look: it captures its default{served or ', layers 2, n//2 and n-3'}.",
        tuple(evidence),
        "Move them to eagle_config.eagle_aux_hidden_state_layer_ids.",
    )


def _ids_not_read(case: Case) -> Finding | None:
    """Releases before 0.4.9 do not look for ids in the draft config at all."""
    layers = layers_of(case)
    if layers is None or not layers.knowledge.surely_before(str(OLDEST)):
        return None
    served = "2, n//2 and n-3"
    if layers.num_layers_known:
        served = ", ".join(map(str, (2, layers.num_layers // 2, layers.num_layers - 3)))
    return Finding(
        "aux-layers-defaulted",
        "high",
        "certain",
        f"{str(layers.knowledge).capitalize()} does not read the ids {list(layers.ids or ())}: it "
        f"captures the inputs of layers {served}.",
        tuple(_ids_evidence(case, layers)),
        f"Serve with {OLDEST} or newer.",
    )


_SHAPES = re.compile(r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)")


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
        where = str(layers.knowledge) if everywhere else f"releases {first} to {last}"
        happens = f"; the server then raises {capture.errors[0]}" if capture.errors else ""
        return Finding(
            "aux-layer-not-capturable",
            "critical",
            "certain" if sure else "likely" if everywhere else "possible",
            f"Layer id {ids} of {list(layers.ids or ())} cannot be captured on {where} "
            f"(target of {layers.num_layers} layers){happens}."
            if layers.num_layers_known
            else f"Layer id {ids} of {list(layers.ids or ())} cannot be captured on {where}"
            f"{happens}.",
            (*_ids_evidence(case, layers), *([crash[1]] if crash else [])),
            _advice(case, layers, layers.knowledge.release or last),
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
        tuple(_ids_evidence(case, layers)),
        _advice(case, layers, layers.knowledge.release or last)
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
