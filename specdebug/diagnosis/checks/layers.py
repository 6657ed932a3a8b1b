"""Checks of which hidden states the draft is fed: mismatch, convention, defaults."""

from __future__ import annotations

from specdebug.diagnosis.arguments import draft_config, setups
from specdebug.diagnosis.checks import vllm_layers
from specdebug.diagnosis.checks.capture import (
    NO_IDS,
    OLDEST,
    Layers,
    advice,
    ids_evidence,
    layers_of,
    named,
)
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.findings import Confidence, Evidence, Finding
from specdebug.eagle import aux_layers
from specdebug.eagle.aux_layers import Capture
from specdebug.eagle.draft_config import DraftConfig

_TRAINED = ", which are those of the training"


def aux_layer_mismatch(case: Case) -> Finding | None:
    """The captured layers are not the trained ones; needs the training side."""
    layers, features = layers_of(case), case.training.features
    if layers is None:
        return vllm_layers.mismatch(case)
    if features is None or not layers.by_release:
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
        f"{_cause(layers)} capture the inputs of layers {named(served)}, while the draft was "
        f"trained on {named(trained)}: " + "; ".join(odd) + ".",
        (
            *ids_evidence(case, layers),
            Evidence(case.training.source, None, f"training.features: {list(features)}"),
        ),
        advice(case, layers, release),
        ""
        if confidence == "certain"
        else "the engine's release and the target's config.json (known here from "
        f"{layers.architecture_from})",
    )


def _cause(layers: Layers) -> str:
    if layers.ids is not None:
        return f"Ids {list(layers.ids)} make {layers.knowledge}"
    return f"Without ids where the engine looks, the default makes {layers.knowledge}"


def _one(index: int | None) -> str:
    return "nothing" if index is None else "the embedding" if index == 0 else f"layer {index}"


def aux_layer_convention(case: Case) -> Finding | None:
    """The same file means other layers on another release, or is written for another framework."""
    layers = layers_of(case)
    if layers is None:
        return vllm_layers.convention(case)
    if layers.ids is None or not layers.by_release:
        return None
    features = case.training.features
    readings = [
        f"{a} to {b}: inputs of layers {named(c.hidden_states_indices)}"
        + (f" (id {c.not_capturable[0]} not captured)" if c.not_capturable else "")
        for a, b, c in layers.everywhere
    ]
    evidence = tuple(ids_evidence(case, layers))
    distinct = {c.hidden_states_indices for _, _, c in layers.everywhere}
    if len(distinct) > 1:
        # A range of releases within which the ids mean one thing is as good as the release itself.
        settled = (
            "the training side: which layers were fed"
            if features is None
            else "the engine's release"
            if layers.capture is None
            else ""
        )
        told = ""
        if layers.capture is not None and layers.knowledge.release is None:
            told = f" The log is of {layers.knowledge}."
        fix = "Pin the release beside the draft, and write the ids for that release."
        if features is not None and not _as_trained(case, layers.capture):
            fix += f" {advice(case, layers, layers.everywhere[-1][1])}"
        return Finding(
            "aux-layer-convention",
            "info" if features is not None and layers.capture is not None else "medium",
            "certain" if layers.architecture_from == "target config" else "likely",
            f"Ids {list(layers.ids)} name other layers by release: {'; '.join(readings)}.{told}",
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
    if draft is None or not draft.is_eagle3 or not draft.use_aux_hidden_state:
        return None
    if any(s.engine == "vllm" for s in setups(case)):
        return None
    if draft.aux_layer_ids is not None:
        return _ids_not_read(case)
    layers = layers_of(case)
    capture = layers.capture if layers is not None else None
    if draft.written_aux_layer_ids is None:
        return _no_ids(case, draft, capture)
    return _ids_elsewhere(case, draft, layers, capture)


def _served(capture: Capture | None) -> str:
    """The engine's default layers, by number where the target's depth is known."""
    return named(capture.hidden_states_indices) if capture else "2, n//2 and n-3"


def _as_trained(case: Case, capture: Capture | None) -> bool:
    features = case.training.features
    return (
        capture is not None
        and features is not None
        and aux_layers.normal(features) == capture.hidden_states_indices
    )


def _no_ids(case: Case, draft: DraftConfig, capture: Capture | None) -> Finding:
    """No ids anywhere: right for a draft that was trained on the engine's default."""
    right = _as_trained(case, capture)
    return Finding(
        "aux-layers-defaulted",
        "info" if right or case.training.features is None else "high",
        "certain",
        "The draft config names no layers that the engine can read, so it captures its default, "
        f"the inputs of layers {_served(capture)}{_TRAINED if right else ''}.",
        (Evidence(_source(case), None, draft.ids_as_written or NO_IDS),),
        "Write eagle_config.eagle_aux_hidden_state_layer_ids explicitly.",
        "" if right else "the training side: which layers were fed",
    )


def _ids_elsewhere(
    case: Case, draft: DraftConfig, layers: Layers | None, capture: Capture | None
) -> Finding:
    """Ids under another key, where the engine does not look."""
    written = draft.written_aux_layer_ids or ()
    meant = None
    if layers is not None and layers.by_release and capture is not None:
        last = layers.by_release[-1][1]
        meant = aux_layers.captured(written, layers.num_layers, layers.architecture, last)
    same = (
        capture is not None
        and meant is not None
        and meant.hidden_states_indices == capture.hidden_states_indices
    )
    right = _as_trained(case, capture)
    served = _served(capture)
    ends = (
        f"the engine does not look; its default captures the same layers, {served}."
        if same
        else f"the engine does not look: it captures its default, the inputs of layers {served}"
        f"{_TRAINED if right else ''}."
    )
    return Finding(
        "aux-layers-defaulted",
        "info" if same or right else "high",
        "certain",
        f"Layer ids {list(written)} stand under {draft.aux_key} ({draft.aux_source}), where {ends}",
        (Evidence(_source(case), None, draft.ids_as_written),),
        _where_to_write(case, layers, meant, same),
    )


def _where_to_write(case: Case, layers: Layers | None, meant: Capture | None, same: bool) -> str:
    """What to write where the engine looks; an id may mean another layer there than it was meant
    for, so trained layers are named in the release's own way."""
    key = "eagle_config.eagle_aux_hidden_state_layer_ids"
    if layers is not None and layers.by_release and case.training.features is not None:
        release = layers.knowledge.release or layers.by_release[-1][1]
        return f"Name the trained layers in {key}. {advice(case, layers, release)}"
    if meant is None or same:
        return f"Move them to {key}{' all the same' if same else ''}."
    return (
        f"Move them to {key} if the draft was trained on the inputs of layers "
        f"{named(meant.hidden_states_indices)}: that is what they capture there."
    )


def _source(case: Case) -> str:
    return case.draft.source if case.draft else "draft config"


def _ids_not_read(case: Case) -> Finding | None:
    """Releases before 0.4.9 do not look for ids in the draft config at all."""
    layers = layers_of(case)
    if layers is None or not layers.knowledge.surely_before(str(OLDEST)):
        return None
    capture = layers.capture
    ids = layers.ids or ()
    meant = aux_layers.captured(ids, layers.num_layers, layers.architecture, OLDEST)
    same = capture is not None and meant.inputs_of_layers == capture.inputs_of_layers
    right = _as_trained(case, capture)
    fix = f"Serve with {OLDEST} or newer."
    if case.training.features is not None:
        fix += f" {advice(case, layers, OLDEST)}"
    told = ", which is what they mean" if same else _TRAINED if right else ""
    return Finding(
        "aux-layers-defaulted",
        "info" if same or right else "high",
        "certain",
        f"{str(layers.knowledge).capitalize()} does not read the ids {list(ids)}: it captures the "
        f"inputs of layers {_served(capture)}{told}.",
        tuple(ids_evidence(case, layers)),
        fix,
    )
