"""The probe as a command: reads a pair of checkpoints and a text, and says what the draft was
trained on beside what a release will feed it; scores nothing itself."""

import argparse
import json
import re
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specdebug.eagle import aux_layers
from specdebug.reference import capture, checkpoint, corpus, tokenizer
from specdebug.reference.probe import CERTAIN, Probe, probe
from specdebug.sglang.releases import Release

FITS, WRONG, UNUSABLE = 0, 1, 2
WINDOW = 64
LARGEST_TEXT = 64 << 20


class ProbeError(Exception):
    """Input that cannot be used; the message says which and what to do."""


def main(argv: list[str] | None = None) -> int:
    """Run the probe; 0 where what is served fits, 1 where it does not, 2 for unusable input."""
    args = _parser().parse_args(argv)
    torch.set_num_threads(1)  # two threads are slower at this size
    try:
        told = _told(args)
    except (
        ProbeError,
        checkpoint.CheckpointError,
        tokenizer.TokenizerError,
        capture.CaptureError,
        ValueError,
    ) as error:
        sys.stderr.write(f"specdebug probe: {error}\n")
        return UNUSABLE
    if args.json:
        sys.stdout.write(json.dumps(told, indent=1) + "\n")
    else:
        sys.stdout.write("\n".join(_lines(told)) + "\n")
    return WRONG if told["fits"] is False else FITS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="specdebug probe",
        description="Find the hidden states of TARGET that DRAFT was trained on.",
    )
    parser.add_argument("target", type=Path, help="checkpoint folder of the target")
    parser.add_argument("draft", type=Path, help="checkpoint folder of the EAGLE-3 draft")
    parser.add_argument("--text", type=Path, help="varied text (Python's own library)")
    parser.add_argument("--tokens", type=int, default=1024, help="how many tokens (1024)")
    parser.add_argument(
        "--served", metavar="K,K,K", help="hidden states that are served, 0 the embedding"
    )
    parser.add_argument("--engine-version", metavar="V", help="SGLang's release that will serve it")
    parser.add_argument("--exhaustive", action="store_true", help="score every set of layers")
    parser.add_argument("--json", action="store_true")
    return parser


def _told(args: argparse.Namespace) -> dict[str, Any]:
    target = checkpoint.load_target(args.target)
    draft = checkpoint.load_draft(args.draft, target)
    served, why = _served(args, target.shape.num_hidden_layers, draft.num_aux)
    ids = _windows(args, min(WINDOW, target.shape.max_position_embeddings))
    found = probe(target, draft, ids, served, exhaustive=args.exhaustive)
    return {
        **asdict(found),
        "fits": found.fits,
        "served_because": why,
        "layer_ids": _ids(found, target.shape.num_hidden_layers, args.engine_version),
        "certain_from_z": CERTAIN,
    }


def _served(
    args: argparse.Namespace, num_layers: int, num_aux: int
) -> tuple[tuple[int, ...] | None, str]:
    """What is fed to the draft, and a sentence on how that is known."""
    if args.served is not None:
        if not re.fullmatch(r"\d{1,4}(,\d{1,4})*", args.served):
            raise ProbeError(f"--served {args.served!r}: write hidden states as 2,6,10")
        return tuple(int(k) for k in args.served.split(",")), "given by --served"
    config = checkpoint.read_config(args.draft)
    file = args.draft / checkpoint.CONFIG
    if args.engine_version is None:
        found = capture.from_config(config, file, num_layers=num_layers, num_aux=num_aux)
        return found.hidden_states, "as the reference engine reads the draft's config"
    eagle = config.get(capture.EAGLE_KEY)
    ids = eagle.get(capture.LAYER_IDS_KEY) if isinstance(eagle, dict) else None
    release = _release(args.engine_version)
    known = aux_layers.captured(ids, num_layers, checkpoint.TARGET_ARCHITECTURE, release)
    if known.errors:
        return None, f"SGLang {args.engine_version} does not serve it: {'; '.join(known.errors)}"
    return known.hidden_states_indices, f"SGLang {args.engine_version}: {known.why}"


def _release(text: str) -> Release:
    found = Release.find(text)
    if found is None:
        raise ProbeError(f"--engine-version {text!r} is no release; write it as 0.5.10")
    return found


def _ids(found: Probe, num_layers: int, version: str | None) -> dict[str, Any]:
    """The ids for the draft's config with which the best set would be fed."""
    layers = found.best.layers
    if version is None:
        return {"ids": [k - capture.ID_OFFSET for k in layers], "why": "for the reference engine"}
    advice = aux_layers.ids_for(
        ["embed" if k == 0 else k for k in layers],
        num_layers,
        checkpoint.TARGET_ARCHITECTURE,
        _release(version),
    )
    return {"ids": None if advice.ids is None else list(advice.ids), "why": advice.why}


def _windows(args: argparse.Namespace, size: int) -> Tensor:
    """Text as windows of tokens [windows, size], spread over all of it."""
    if not size < args.tokens <= 1 << 16:
        raise ProbeError(f"--tokens {args.tokens}: must be more than {size} and at most 65536")
    vocabulary = tokenizer.load(args.target)
    ids = vocabulary.encode(_text(args.text), add_special_tokens=False).ids
    wanted = args.tokens // size
    if len(ids) < wanted * size:
        raise ProbeError(
            f"the text has {len(ids)} tokens, {wanted * size} are needed; give more --text or "
            "fewer --tokens"
        )
    # Neighbouring windows tell less than distant ones.
    stride = (len(ids) - size) // max(1, wanted - 1)
    return torch.tensor([ids[k * stride : k * stride + size] for k in range(wanted)])


def _text(path: Path | None) -> str:
    if path is None:
        root = Path(sysconfig.get_paths()["stdlib"])
        files = [root / name for name in corpus.SOURCES]
        return "\n".join(f.read_text("utf-8", "replace") for f in files if f.is_file())
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_TEXT)
    except OSError as error:
        raise ProbeError(f"{path}: cannot read it: {error.strerror}") from None
    return data.decode("utf-8", "replace")


def _lines(told: dict[str, Any]) -> Sequence[str]:
    best, served = told["best"], told["served"]
    how = "every set" if told["exhaustive"] else "a slot at a time"
    lines = [
        f"fits best: hidden_states {_set(best)}, {best['loss']:.3f} nats a token, {_agrees(best)}",
        f"  ({told['tokens']} tokens, {told['tried']} sets scored, {how}; 0 is the embedding)",
    ]
    if served is None:
        lines.append(f"nothing to compare with: {told['served_because']}")
    else:
        verdict = _verdict(told["fits"], served, best)
        lines += [
            f"served are {_set(served)} ({told['served_because']}): {verdict}",
            f"  {served['worse']:+.3f} nats a token (z {served['z']:.1f}), {_agrees(served)}",
        ]
        if told["fits"] is False:
            ids = told["layer_ids"]
            lines.append(f"  layer ids that would feed it right: {ids['ids']} ({ids['why']})")
    lines.append("each slot's part of what the draft is fed:")
    lines += [
        f"  slot {place}: hidden_states[{slot['layer']}], {100 * slot['share']:.1f} %"
        + _others(slot)
        for place, slot in enumerate(told["slots"])
    ]
    return lines


def _others(slot: dict[str, Any]) -> str:
    """The states that this slot cannot be told from, in words."""
    others = [str(k) for k in slot["alike"] if k != slot["layer"]]
    return f"; as well {', '.join(others)} (z below {CERTAIN:g})" if others else ""


def _verdict(fits: bool | None, served: dict[str, Any], best: dict[str, Any]) -> str:
    if served["layers"] == best["layers"]:
        return "they fit"
    return "cannot be told from these" if fits else "WRONG"


def _agrees(score: dict[str, Any]) -> str:
    return f"names the target's token {100 * score['agreement']:.0f} times in 100"


def _set(score: dict[str, Any]) -> str:
    return str(list(score["layers"]))


if __name__ == "__main__":
    raise SystemExit(main())
