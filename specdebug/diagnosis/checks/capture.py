"""What the draft config's layer ids capture on each possible release; it judges nothing."""

from __future__ import annotations

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
from specdebug.diagnosis.findings import Evidence
from specdebug.eagle import aux_layers
from specdebug.eagle.aux_layers import Capture
from specdebug.sglang.releases import KNOWN, Release

OLDEST = Release.parse("0.4.9")  # older releases read no ids from the draft config
UNKNOWN_DEPTH = 1 << 16
NO_IDS = "no eagle_config.eagle_aux_hidden_state_layer_ids"


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
    old = knowledge.surely_before(str(OLDEST))
    possible = [r for r in knowledge.possible if old or r >= OLDEST]
    if old and depth is None:
        possible = []  # the default layers count from the target's last one
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


def ids_evidence(case: Case, layers: Layers) -> list[Evidence]:
    draft = draft_config(case)
    assert case.draft is not None and draft is not None  # noqa: S101, PT018 (layers_of needs it)
    out = [Evidence(case.draft.source, None, draft.ids_as_written or NO_IDS)]
    if layers.knowledge.evidence is not None:
        out.append(layers.knowledge.evidence)
    return out


def named(indices: tuple[int, ...]) -> str:
    """Hidden-state indices as a reader knows them: 0 is the embedding."""
    return "[" + ", ".join("embedding" if i == 0 else str(i) for i in indices) + "]"


def advice(case: Case, layers: Layers, release: Release) -> str:
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
