"""What the draft config's layer ids mean to vLLM: the layer whose input is captured, by its number.

vLLM takes the ids of the config's top level, later versions those of eagle_config as well; without
any it captures the inputs of layers 2, n // 2 and n - 3 (get_eagle3_aux_hidden_state_layers of its
models). Which version serves is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass

from specdebug.diagnosis.arguments import draft_config, setups, target_config
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.findings import Evidence, Finding
from specdebug.eagle import aux_layers

_SETTLED = 'the line "Using auxiliary layers from speculative config" of the server log'


@dataclass(frozen=True, slots=True)
class Reading:
    """The layers whose inputs some versions capture, ascending; which: those versions, if not
    all."""

    layers: tuple[int, ...]
    which: str = ""


def readings(case: Case) -> tuple[Reading, ...]:
    """What vLLM may capture; empty where it does not serve or nothing can be said."""
    draft = draft_config(case)
    if draft is None or not draft.is_eagle3 or not draft.use_aux_hidden_state:
        return ()
    if not any(setup.engine == "vllm" for setup in setups(case)):
        return ()
    target = target_config(case)
    depth = target.num_hidden_layers if target else None
    default = aux_layers.default_ids("vllm", depth) if depth else None
    if draft.aux_source == "top-level" and draft.written_aux_layer_ids:
        return (Reading(tuple(sorted(draft.written_aux_layer_ids))),)
    if draft.aux_layer_ids is None:
        return (Reading(default),) if default else ()
    named = Reading(tuple(sorted(draft.aux_layer_ids)), "a version that reads eagle_config")
    if default is None or default == named.layers:
        return (Reading(named.layers),) if default else (named,)
    return (named, Reading(default, "a version that reads the top level alone, by its default"))


def mismatch(case: Case) -> Finding | None:
    """No version captures what the draft was trained on."""
    features, found = case.training.features, readings(case)
    if features is None or not found or not _known(found):
        return None
    trained = aux_layers.normal(features)
    if any(reading.layers == trained for reading in found):
        return None
    return Finding(
        "aux-layer-mismatch",
        "critical",
        "likely",
        f"vLLM captures {_told(found)}, while the draft was trained on the inputs of layers "
        f"{list(trained)} (0 is the embedding).",
        _evidence(case),
        _fix(trained),
        _SETTLED,
    )


def convention(case: Case) -> Finding | None:
    """Right on some versions only, or ids as SpecForge writes them."""
    features, found = case.training.features, readings(case)
    if not found:
        return None
    if features is not None:
        trained = aux_layers.normal(features)
        right = [reading for reading in found if reading.layers == trained]
        if len(right) == len(found) or (not right and _known(found)):
            return None
        statement = (
            f"The draft was trained on the inputs of layers {list(trained)}; vLLM captures "
            f"{_told(found)}."
        )
        fix, settled = _fix(trained), _SETTLED
    else:
        meant = _as_specforge(case)
        if meant is None or all(reading.layers == meant for reading in found):
            return None
        statement = (
            "The ids are SpecForge's defaults, where they mean the inputs of layers "
            f"{list(meant)}; vLLM captures {_told(found)}."
        )
        fix = f"If the draft was made with SpecForge: {_fix(meant)}"
        settled = "the framework the draft was trained with, or its training features"
    return Finding(
        "aux-layer-convention", "medium", "possible", statement, _evidence(case), fix, settled
    )


def _known(found: tuple[Reading, ...]) -> bool:
    """Whether every version's layers are known: without the target's depth a default is not."""
    return not found[0].which or len(found) > 1


def _told(found: tuple[Reading, ...]) -> str:
    return " or ".join(
        f"the inputs of layers {list(reading.layers)}"
        + (f" ({reading.which})" if reading.which else "")
        for reading in found
    )


def _fix(layers: tuple[int, ...]) -> str:
    return (
        f"Write eagle_aux_hidden_state_layer_ids: {list(layers)} at the top level of the draft's "
        "config.json: in vLLM an id is the layer whose input is captured."
    )


def _evidence(case: Case) -> tuple[Evidence, ...]:
    draft, features = draft_config(case), case.training.features
    assert draft is not None and case.draft is not None  # noqa: S101, PT018 (readings needs it)
    told = draft.ids_as_written or "no eagle_aux_hidden_state_layer_ids"
    out = [Evidence(case.draft.source, None, told)]
    if features is not None:
        training = f"training.features: {list(features)}"
        out.append(Evidence(case.training.source, None, training))
    return tuple(out)


def _as_specforge(case: Case) -> tuple[int, ...] | None:
    """What the ids mean to SpecForge, where they are its defaults for this target."""
    draft, target = draft_config(case), target_config(case)
    depth = target.num_hidden_layers if target else None
    if draft is None or not depth or draft.written_aux_layer_ids is None:
        return None
    if draft.written_aux_layer_ids != aux_layers.default_ids("specforge", depth):
        return None
    return aux_layers.meaning(draft.written_aux_layer_ids, "specforge")
