"""Which hidden states of the target an EAGLE-3 draft is fed, by release and framework."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

Feature = int | Literal["embed"]
Framework = Literal["specforge", "specforge-before-2025-10-20", "vllm", "speculators", "eagle"]
Key = tuple[int, int, int, int, int]


class ReleaseLike(Protocol):
    """An SGLang release by its sort key (major, minor, patch, stage, number).

    specdebug.sglang.releases.Release is one.
    """

    @property
    def key(self) -> Key: ...


@dataclass(frozen=True)
class _At:
    key: Key


# Releases between which the rules of capture do not change, as far as sources were read.
_SPANS: tuple[tuple[str, str | None], ...] = (
    ("0.4.6", "0.4.8"),
    ("0.4.9", "0.5.11"),
    ("0.5.12", "0.5.12"),
    ("0.5.13", "0.5.13"),
    ("0.5.14", "0.5.16"),
    ("0.5.17", None),
)
IDS_READ: Key = (0, 4, 9, 0, 0)
FIRST_ID_DECIDES: Key = (0, 5, 13, 0, 0)
COUNT_FROM_CONFIG: Key = (0, 5, 12, 0, 0)
DEEPSEEK_EMBEDDING: Key = (0, 5, 14, 0, 0)
COUNT_CHECKED: Key = (0, 5, 17, 0, 0)

# Served by deepseek_v2.py or glm4_moe_lite.py, where from 0.5.13 the first id decides the meaning.
DEEPSEEK_FAMILY = frozenset(
    {
        "DeepseekV2ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
        "KimiK2ForCausalLM",
        "KimiK25ForConditionalGeneration",
        "Glm4MoeLiteForCausalLM",
        "GlmMoeDsaForCausalLM",
        "MistralLarge3ForCausalLM",
    }
)
# Their code captures the state in front of layer 0 (read in 0.5.10.post1; qwen2.py since 0.4.9).
EMBEDDING_CAPTURED = frozenset(
    {
        "Qwen2ForCausalLM",
        "Qwen3ForCausalLM",
        "Qwen2_5_VLForConditionalGeneration",
        "Qwen3VLForConditionalGeneration",
        "Qwen3VLMoeForConditionalGeneration",
        "Glm4ForCausalLM",
        "BailingMoeForCausalLM",
        "BailingMoeV2ForCausalLM",
    }
)
_NO_RESIDUAL = "TypeError: unsupported operand type(s) for +: 'Tensor' and 'NoneType'"


@dataclass(frozen=True)
class Capture:
    """What a release feeds the draft.

    `inputs_of_layers` are the layers whose input is captured, in the order of concatenation
    (ascending); layer 0's input is the embedding. The input of layer k is Hugging Face's
    `hidden_states[k]`, so `hidden_states_indices` equals it; both are given so that nobody has to
    know. `not_capturable` are ids that yield nothing there, `errors` what the server then raises,
    `since`/`until` the releases (as text, None: open) this holds for.
    """

    ids: tuple[int, ...] | None
    inputs_of_layers: tuple[int, ...]
    hidden_states_indices: tuple[int, ...]
    convention: str
    why: str
    not_capturable: tuple[int, ...]
    errors: tuple[str, ...]
    since: str | None = None
    until: str | None = None

    @property
    def features(self) -> tuple[Feature, ...]:
        """The captured states in notes' words: "embed" or the layer whose input it is."""
        return tuple("embed" if layer == 0 else layer for layer in self.inputs_of_layers)


def captured(
    ids: Sequence[int] | None,
    num_layers: int,
    architecture: str | None,
    release: ReleaseLike,
) -> Capture:
    """What `release` captures for these ids of a draft config (None: no ids read, the defaults).

    `architecture` is the target's `architectures[0]`; None is taken as a target without special
    rules and `why` says so. Raises ValueError if num_layers < 1.
    """
    if num_layers < 1:
        raise ValueError(f"a target has at least one layer, not {num_layers}")
    layers, convention, why = _layers(ids, num_layers, architecture, release.key)
    if architecture is None:
        why += " (target architecture not given: judged as one without special rules)"
    given = list(ids) if ids is not None and release.key >= IDS_READ else layers
    usable: list[int] = []
    lost: list[int] = []
    errors: list[str] = []
    for written, layer in zip(given, layers, strict=True):
        if layer == 0 and not _embedding(architecture, release.key):
            lost.append(written)
            errors.append(f"{_NO_RESIDUAL} (in front of layer 0 there is no residual yet)")
        elif 0 <= layer < num_layers:
            usable.append(layer)
        else:
            lost.append(written)
    inputs = tuple(sorted(set(usable)))
    wanted = len(given) if release.key >= COUNT_FROM_CONFIG else 3
    if len(inputs) != wanted and not errors:
        errors.append(_too_few(len(inputs), wanted, release.key))
    return Capture(
        ids=tuple(ids) if ids is not None else None,
        inputs_of_layers=inputs,
        hidden_states_indices=inputs,
        convention=convention,
        why=why,
        not_capturable=tuple(dict.fromkeys(lost)),
        errors=tuple(dict.fromkeys(errors)),
    )


def _layers(
    ids: Sequence[int] | None, num_layers: int, architecture: str | None, key: Key
) -> tuple[list[int], str, str]:
    """(layers whose input is asked for, name of the convention, a sentence)."""
    if ids is None or key < IDS_READ:
        layers = [2, num_layers // 2, num_layers - 3]
        why = (
            "no ids are read from the draft's config, so the default layers are captured"
            if ids is None
            else "this release does not read ids from the draft's config; it captures its defaults"
        )
        return layers, "default", why
    if key >= FIRST_ID_DECIDES and architecture in DEEPSEEK_FAMILY and (not ids or ids[0] != 1):
        why = (
            f"for {architecture} this release takes ids as written unless the first is 1: "
            "an id is the layer whose input is captured"
        )
        return list(ids), "input-of", why
    why = "an id is the layer whose output is captured, which is the input of the next layer"
    if key >= FIRST_ID_DECIDES and architecture in DEEPSEEK_FAMILY:
        why = f"the first id is 1, so for {architecture} this release adds 1: {why}"
    return [layer + 1 for layer in ids], "output-of", why


def _embedding(architecture: str | None, key: Key) -> bool:
    if architecture in DEEPSEEK_FAMILY:
        return key >= DEEPSEEK_EMBEDDING
    return architecture in EMBEDDING_CAPTURED


def _too_few(found: int, wanted: int, key: Key) -> str:
    if key >= COUNT_CHECKED:
        return f"RuntimeError: captured {found} of {wanted} aux hidden states"
    return (
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied "
        f"({found} states reach an fc made for {wanted})"
    )


def readings(
    ids: Sequence[int] | None, num_layers: int, architecture: str | None
) -> tuple[Capture, ...]:
    """What each run of releases captures, oldest first, when the release is not known."""
    out: list[Capture] = []
    for since, until in _SPANS:
        major, minor, patch = (int(part) for part in since.split("."))
        found = captured(ids, num_layers, architecture, _At((major, minor, patch, 0, 0)))
        last = out[-1] if out else None
        if last is not None and (
            last.inputs_of_layers,
            last.convention,
            last.not_capturable,
            last.errors,
        ) == (found.inputs_of_layers, found.convention, found.not_capturable, found.errors):
            out[-1] = replace(last, until=until)
        else:
            out.append(replace(found, since=since, until=until))
    return tuple(out)


def normal(features: Iterable[Feature]) -> tuple[int, ...]:
    """Features as hidden_states indices ("embed" is 0), in the order given.

    Raises ValueError on anything but "embed" and whole numbers from 0 on.
    """
    out = []
    for feature in features:
        if feature == "embed":
            out.append(0)
        elif isinstance(feature, int) and not isinstance(feature, bool) and feature >= 0:
            out.append(feature)
        else:
            raise ValueError(
                f'a feature is "embed" or the layer whose input it is, not {feature!r}'
            )
    return tuple(out)


# What an id k means to others, as the index into Hugging Face's hidden_states.
_SHIFT: dict[Framework, int] = {
    "specforge": 1,
    "specforge-before-2025-10-20": 1,
    "vllm": 0,
    "speculators": 0,
    "eagle": 0,
}


def meaning(ids: Sequence[int], framework: Framework) -> tuple[int, ...]:
    """The hidden_states indices that another framework means by these ids."""
    return tuple(layer + _SHIFT[framework] for layer in ids)


def default_ids(framework: Framework, num_layers: int) -> tuple[int, ...]:
    """The ids another framework uses when nobody says otherwise."""
    if framework == "specforge":
        return (1, num_layers // 2 - 1, num_layers - 4)
    if framework == "specforge-before-2025-10-20":
        # Online training took the middle layer one too late before that date.
        return (1, num_layers // 2, num_layers - 4)
    return (2, num_layers // 2, num_layers - 3)


@dataclass(frozen=True)
class IdsAdvice:
    """Ids with which a release captures the wanted features; None with the reason if none do."""

    ids: tuple[int, ...] | None
    why: str


def ids_for(
    features: Iterable[Feature], num_layers: int, architecture: str | None, release: ReleaseLike
) -> IdsAdvice:
    """The ids that make `release` capture exactly these features of this target."""
    wanted = tuple(sorted(set(normal(features))))
    # The form with "+ 1" first: where it works it works on older releases too.
    for ids in (
        tuple(layer - 1 for layer in wanted),
        wanted,
        # A first id of 1 would be read the other way; order means nothing, so it goes last.
        tuple(sorted(wanted, key=lambda layer: (layer == 1, layer))),
    ):
        found = captured(ids, num_layers, architecture, release)
        if found.inputs_of_layers == wanted and not found.errors:
            return IdsAdvice(ids, found.why)
    reason = captured(tuple(layer - 1 for layer in wanted), num_layers, architecture, release)
    why = "; ".join(reason.errors) or reason.why
    shown = ", ".join("embedding" if layer == 0 else str(layer) for layer in wanted)
    return IdsAdvice(None, f"no ids make this release capture the inputs of layers {shown}: {why}")


SlotVerdict = Literal[
    "same", "off by one", "missing embedding", "wrong order", "wrong layer", "missing"
]


@dataclass(frozen=True)
class Slot:
    """One input slot of fc: what training fed and what serving captures (hidden_states indices)."""

    slot: int
    trained: int | None
    served: int | None
    verdict: SlotVerdict


def compare(trained: Sequence[Feature], served: Sequence[int]) -> tuple[Slot, ...]:
    """Training's features beside the captured ones, slot by slot."""
    wanted = normal(trained)
    out = []
    for slot in range(max(len(wanted), len(served))):
        want = wanted[slot] if slot < len(wanted) else None
        got = served[slot] if slot < len(served) else None
        verdict: SlotVerdict
        if want == got:
            verdict = "same"
        elif want is None or got is None:
            verdict = "missing"
        elif want == 0 and 0 not in served:
            verdict = "missing embedding"
        elif want in served:
            verdict = "wrong order"
        elif abs(want - got) == 1:
            verdict = "off by one"
        else:
            verdict = "wrong layer"
        out.append(Slot(slot, want, got, verdict))
    return tuple(out)
