"""From commands, server answers and notes to the rows of a Case; no file access, no judgement."""

from __future__ import annotations

import json
from collections.abc import Mapping

from specdebug.diagnosis.facts import (
    FRAGMENT,
    Fact,
    Feature,
    Launch,
    ServerState,
    Training,
)
from specdebug.measure.middle import mean
from specdebug.sglang.flags import LaunchCommand
from specdebug.sglang.log_line import engine_free
from specdebug.sglang.patterns import regex
from specdebug.sglang.releases import Release
from specdebug.sglang.run_names import told_by_label
from specdebug.sglang.server_info import ServerInfo


def release(text: str) -> Release | None:
    """The release a person wrote, None when there is none in it."""
    return Release.find(text)


_PROSE = regex(r"(?i)\bsglang(?:[ :=\"'-]|\s+version\s*|==\s*)*v?(0\.\d+\.\d+(?:\.post\d+)?)")


def release_in_prose(text: str) -> str | None:
    """A release named right after the word sglang ("sglang 0.5.9", "sglang:v0.5.9")."""
    match = _PROSE.search(text)
    return match.group(1) if match else None


def launch(command: LaunchCommand, source: str) -> Launch:
    """A parsed command as rows; vLLM's speculation under SGLang's names."""
    requested = {
        dest: Fact(
            given.value,
            source,
            given.line,
            f"{given.flag_as_written} {given.raw}".strip(),
        )
        for dest, given in command.flags.items()
    }
    if command.engine == "vllm":
        from specdebug.sglang import vllm  # late: few commands are of vLLM

        line = command.line
        for dest, value in vllm.as_sglang_flags(command).items():
            requested[dest] = Fact(value, source, line, f"{dest}={value}")
    env = {k: Fact(v, source, command.line, f"{k}={v}") for k, v in command.env.items()}
    # A variable that is set elsewhere: the flag was given, with a value nobody here knows.
    blind = [dest for dest, fact in requested.items() if "$" in str(fact.value)]
    part = any(dest.startswith("speculative_") for dest in blind)
    for dest in blind:
        del requested[dest]
    return Launch(
        source=source,
        line=command.line,
        text=" ".join(command.argv)[:400],
        engine=FRAGMENT if part and command.engine == "sglang" else command.engine,
        requested=requested,
        env=env,
        problems=tuple(f"line {p.line}: {p.message}" for p in command.problems),
    )


_QUOTED = regex(r"(?<![\w-])--(speculative-[a-z-]+)(?:[= ]+)([\w./-]*[\w/])")


# The same as a keyword argument or in a YAML file, one to a line.
_KEYED = regex(
    r"^\s*[\"']?(speculative[-_][a-z_-]+|max[-_]running[-_]requests)[\"']?\s*[:=]\s*"
    r"[\"']?([\w./-]*[\w/])[\"']?\s*[,)]*\s*(?:#.*)?$"
)
# The same in a call that is written on one line.
_CALLED = regex(
    r"\b(speculative_[a-z_]+|max_running_requests)\s*=\s*[\"']?([\w./-]*[\w/])[\"']?\s*[,)]"
)
# The same in a sentence, by the engine's names or by the short ones.
_NAMED = regex(r"\b(speculative_(?:num_steps|eagle_topk|num_draft_tokens))\s*[=:]?\s*(\d{1,3})\b")
_SHORT = ("num_steps", "topk", "requested_draft_tokens")
_ENGINES_NAME = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
# Beside these the keys are effective arguments, not asked ones.
_EFFECTIVE = ("server_args=", "ServerArgs(", "internal_states")


def quoted_flags(text: str, source: str) -> Launch | None:
    """Speculative flags quoted in prose, as a launch that is known in part only."""
    requested: dict[str, Fact] = {}
    keyed = text.lstrip()[:1] not in ("{", "[") and not any(sign in text for sign in _EFFECTIVE)
    for number, line in enumerate(text.splitlines(), start=1):
        found = list(_QUOTED.finditer(line))
        if not found and keyed and len(line) < 400 and (match := _KEYED.match(line)):
            found = [match]
        if not found and keyed and "Engine(" in line:
            found = list(_CALLED.finditer(line[:4_000]))
        for match in found:
            name, raw = match.group(1).replace("-", "_"), match.group(2)
            if raw == name.upper():
                continue  # the placeholder of a page of help
            value = int(raw) if raw.isdigit() else raw
            requested.setdefault(name, Fact(value, source, number, match.group(0).strip()))
    requested = requested or (_told_flags(text, source) if keyed else {})
    if not requested:
        return None
    first = next(iter(requested.values()))
    return Launch(source, first.line, first.text, FRAGMENT, requested)


def _told_flags(text: str, source: str) -> dict[str, Fact]:
    """Steps, topk and draft tokens where words name all three ("steps 1, topk 1, draft 16").

    By short names one line must hold them, by the engine's own names the text. A line with a speed
    or a cell is a run of its own, and not what was asked of this server.
    """
    named: dict[str, Fact] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > 400 or "|" in line or "/s" in line or not engine_free(line):
            continue
        told = told_by_label(line)
        if all(name in told for name in _SHORT):
            return {
                key: Fact(told[name], source, number, line.strip())
                for key, name in zip(_ENGINES_NAME, _SHORT, strict=True)
            }
        for match in _NAMED.finditer(line):
            value = Fact(int(match[2]), source, number, match[0])
            named.setdefault(match[1], value)
    return named if len(named) == len(_SHORT) else {}


def state(info: ServerInfo, source: str) -> ServerState:
    """Effective arguments and averages of a running server."""
    effective = {k: Fact(v, source, None, f"{k}={v!r}"[:200]) for k, v in info.args.items()}
    lengths = [r.avg_accept_len for r in info.ranks if r.avg_accept_len]
    limits = [r.max_running for r in info.ranks if r.max_running]
    average = mean(lengths) if lengths else None
    told = ", ".join(f"{length:.4g}" for length in lengths)
    return ServerState(
        source,
        effective,
        str(info.release) if info.release else None,
        Fact(average, source, None, f"avg_spec_accept_length: {told}") if average else None,
        Fact(limits[0], source, None, f"effective_max_running_requests_per_dp: {limits[0]}")
        if limits
        else None,
        tuple(lengths),
    )


_EMBEDDING = ("embed", "embedding", "embeddings", "embed_tokens", "embed_output")


def _feature(value: object) -> Feature | None:
    """What a person wrote as a feature: the embedding or a layer's number, None for neither."""
    if isinstance(value, str):
        word = value.strip().lower()
        return "embed" if word in _EMBEDDING else int(word) if word.isdigit() else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if value >= 0 else None


def training(value: object, source: str) -> tuple[Training | None, str | None]:
    """Training notes, and what is wrong with them. Accuracy above 1 is read as per cent."""
    if value is None:
        return None, None
    if not isinstance(value, Mapping):
        return None, f"training must be an object, not {json.dumps(value)[:60]}"
    accuracy = value.get("val_accuracy")
    problems: list[str] = []
    if isinstance(accuracy, int | float) and not isinstance(accuracy, bool):
        accuracy = accuracy / 100 if 1 < accuracy <= 100 else accuracy
        if not 0 < accuracy < 1:
            problems.append(f"training.val_accuracy {accuracy} is no fraction")
            accuracy = None
    elif accuracy is not None:
        problems.append(f"training.val_accuracy {json.dumps(accuracy)[:60]} is no number")
        accuracy = None
    features = value.get("features")
    kept: tuple[Feature, ...] | None = None
    if isinstance(features, list | tuple) and features:
        read = [_feature(f) for f in features]
        kept = tuple(f for f in read if f is not None)
        if len(kept) < len(features):
            kept = None
            said = f'training.features {features} may hold "embed" and layer numbers only'
            problems.append(said)
    samples = value.get("samples")
    return (
        Training(source, accuracy, kept, samples if isinstance(samples, int) else None),
        "; ".join(problems) or None,
    )
