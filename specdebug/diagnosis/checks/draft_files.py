"""Checks of the draft's files against the target: widths, vocabulary, weights, norms, context."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from specdebug.diagnosis.arguments import (
    ReleaseKnowledge,
    as_int,
    draft_config,
    release_knowledge,
    setups,
    target_config,
)
from specdebug.diagnosis.decode import line_evidence
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.findings import Confidence, Evidence, Finding
from specdebug.sglang.releases import Release

if TYPE_CHECKING:  # here and below: a check without weights starts sooner
    from specdebug.eagle.checkpoint import CheckpointReport


@lru_cache(maxsize=16)
def report_of(case: Case) -> CheckpointReport | None:
    """An EAGLE-3 checkpoint against its configs; None without its header or config."""
    draft = draft_config(case)
    if case.header is None or draft is None:
        return None
    if not draft.is_eagle3 and draft.draft_vocab_size is None:
        return None  # another kind of draft, with other tensors and another fc
    from specdebug.eagle import checkpoint

    header = checkpoint.header_from_dict(case.header.raw)
    return checkpoint.check(header, draft, target_config(case))


def _header(case: Case, text: str) -> Evidence:
    return Evidence(case.header.source if case.header else "header", None, text)


def _draft(case: Case, text: str) -> Evidence:
    return Evidence(case.draft.source if case.draft else "draft config", None, text)


# Up to 0.5.9 fc is built for three layers whatever the config says (sglang.md section 2).
_COUNT_READ_AFTER = "0.5.10"
_ALWAYS = 3


def _knowledge(case: Case) -> ReleaseKnowledge:
    """The engine's release, from a setup or, without one, as a person named it."""
    found = setups(case)
    if found:
        return release_knowledge(found[0])
    version = case.engine_version
    exact = Release.find(str(version.value)) if version else None
    return ReleaseKnowledge(exact, exact, exact, version.evidence() if version else None)


def fc_width_mismatch(case: Case) -> Finding | None:
    """fc's input is not the number of captured layers times the target's hidden size."""
    report, draft = report_of(case), draft_config(case)
    if report is None or draft is None or report.fc_in is None or report.expected_fc_in is None:
        return None
    count, expected = draft.aux_count, report.expected_fc_in
    knowledge = _knowledge(case)
    vllm = any(s.engine == "vllm" for s in setups(case))
    fixed = count != _ALWAYS and not vllm and knowledge.surely_before(_COUNT_READ_AFTER)
    if fixed:
        count, expected = _ALWAYS, expected // count * _ALWAYS
    if report.fc_in == expected:
        return None
    target = target_config(case)
    hidden = draft.target_hidden_size or (target.hidden_size if target else None)
    evidence = [
        _header(case, f"fc.weight shape [{report.fc_out}, {report.fc_in}]"),
        _draft(case, f"aux layers: {draft.aux_count}, hidden size {hidden}"),
    ]
    why = f"{count} captured layers of hidden size {hidden} give {expected}"
    fix = "Use the draft that was trained for this target, or correct the number of layer ids."
    if fixed:
        why = f"{knowledge} builds it for 3 layers ({expected}) whatever the number of ids"
        fix = "Serve with 0.5.12 or newer, which reads the number of layers from the draft config."
        evidence += [knowledge.evidence] if knowledge.evidence is not None else []
    return Finding(
        "fc-width-mismatch",
        "critical",
        "certain",
        f"fc takes {report.fc_in} inputs, but {why}.",
        tuple(evidence),
        fix,
    )


@lru_cache(maxsize=16)
def header_alone(case: Case) -> CheckpointReport | None:
    """An EAGLE-3 checkpoint whose config was not given, against what its own tensors betray.

    It has d2t, so it has a head of its own over as many tokens; widths are not judged.
    """
    if case.header is None or case.draft is not None:
        return None
    from specdebug.eagle import checkpoint

    header = checkpoint.header_from_dict(case.header.raw)
    draft = checkpoint.draft_betrayed(header)
    return None if draft is None else checkpoint.check(header, draft, target_config(case))


def draft_vocab_map(case: Case) -> Finding | None:
    """A smaller draft vocabulary without a usable d2t."""
    report = report_of(case) or header_alone(case)
    if report is None:
        return None
    draft, target = draft_config(case), target_config(case)
    small = draft.draft_vocab_size if draft else report.draft_vocab
    vocab = (target.vocab_size if target else None) or (draft.vocab_size if draft else report.vocab)
    problems = list(report.map_problems)
    if "d2t" in case.tensors:
        from specdebug.eagle import checkpoint

        problems += checkpoint.check_d2t(case.tensors["d2t"], small, vocab)
    if not problems:
        return None
    maps = f"d2t {_there(report.has_d2t)}, t2d {_there(report.has_t2d)}"
    evidence = [_header(case, maps)]
    if draft is not None:
        sizes = f"draft_vocab_size: {draft.draft_vocab_size}, vocab_size: {draft.vocab_size}"
        evidence.insert(0, _draft(case, sizes))
    return Finding(
        "draft-vocab-map",
        "critical",
        "certain" if draft is not None else "likely",
        f"The draft speaks {small} of {vocab} tokens and its map is unusable: "
        + "; ".join(p.message.rstrip(".") for p in problems)
        + ".",
        tuple(evidence),
        "Export the draft with d2t (target id minus draft id for each draft id) and t2d.",
        "" if draft is not None else "the draft's config.json (draft_vocab_size)",
    )


def _there(present: bool) -> str:
    return "present" if present else "absent"


def draft_weights_missing(case: Case) -> Finding | None:
    """Tensors the loader needs are not there, or have names it skips."""
    report = report_of(case) or header_alone(case)
    if report is None:
        return None
    if not (report.missing or report.shape_problems):
        return _no_harm(case, report)
    parts = []
    if report.missing:
        parts.append("the checkpoint lacks " + _listed(report.missing))
    if report.shape_problems:
        parts.append("; ".join(f"{name} {message}" for name, message in report.shape_problems))
    if report.unread:
        parts.append("the loader skips " + _listed(report.unread))
    evidence = [_header(case, f"{name}: absent") for name in report.missing[:6]]
    evidence += [_header(case, f"{name}: {text}") for name, text in report.shape_problems[:4]]
    evidence += [_header(case, f"{name}: skipped") for name in report.unread[:2]]
    draft = draft_config(case)
    if any("lm_head" in name for name in report.missing) and draft is not None:
        evidence.append(_draft(case, f"tie_word_embeddings: {draft.tie_word_embeddings}"))
    random = ": the engine leaves random numbers in their place without a word"
    return Finding(
        "draft-weights-missing",
        "critical",
        "certain" if draft is not None else "likely",
        parts[0][0].upper() + "; ".join(parts)[1:] + (random if report.missing else "") + ".",
        tuple(evidence),
        "Export the draft again with all tensors under the names the loader reads.",
        "" if draft is not None else "the draft's config.json",
    )


def _listed(names: Sequence[str], most: int = 4) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _no_harm(case: Case, report: CheckpointReport) -> Finding | None:
    """What is absent or skipped and yet needs nobody's hand: said, so that nobody searches it."""
    parts: list[str] = []
    evidence: list[Evidence] = []
    if not report.has_embedding:
        parts.append(
            "the checkpoint has no embed_tokens.weight, and the engine gives the draft the "
            "target's embedding of the same width"
        )
        evidence.append(_header(case, "embed_tokens.weight: absent"))
    if report.unread:
        parts.append(f"the loader skips {_listed(report.unread)}")
        evidence += [_header(case, f"{name}: skipped") for name in report.unread[:4]]
    if not parts:
        return None
    sure = target_config(case) is not None and not report.unread
    return Finding(
        "draft-weights-missing",
        "info",
        "certain" if sure else "likely",
        parts[0][0].upper() + "; ".join(parts)[1:] + ": no parameter of the draft is left unset.",
        tuple(evidence),
        "",
        "" if sure else "the target's config.json, or whether the training used these tensors",
    )


# (config key, first release that reads it for a Llama draft or None); sglang.md section 2.
_NORMS: tuple[tuple[str, str | None], ...] = (
    ("norm_before_fc", "0.5.18"),
    ("fc_norm", "0.5.12"),
    ("use_aux_norm", "0.5.12"),
    ("norm_output", "0.5.12"),
    ("norm_before_residual", None),
)


def draft_norm_unread(case: Case) -> Finding | None:
    """A norm switch of the draft config that this release does not read."""
    draft = draft_config(case)
    if draft is None or not draft.is_eagle3:
        return None
    if any(s.engine == "vllm" for s in setups(case)):
        return None
    knowledge = _knowledge(case)
    low, high = knowledge.low, knowledge.high
    unread: list[str] = []
    confidence: Confidence = "certain"
    for key, since in _NORMS:
        if not draft.norm_flags.get(key):
            continue
        if since is None:
            unread.append(f"{key} (no release read so far reads it)")
            continue
        first = Release.parse(since)
        if low is not None and low >= first:
            continue
        if high is None or high >= first:
            confidence = "possible"
        unread.append(f"{key} (read from {since} on)")
    if not unread:
        return None
    return Finding(
        "draft-norm-unread",
        "info" if confidence == "possible" else "high",
        confidence,
        f"The draft config sets {', '.join(unread)}, and "
        + (
            f"{knowledge} runs the draft without it."
            if confidence == "certain"
            else "the release, which is not known, may run the draft without it."
        ),
        tuple(_draft(case, f"{k}: {v}") for k, v in draft.norm_flags.items() if v),
        "Serve with a release that reads the key, or train the draft without it.",
        "" if confidence == "certain" else "the engine's release",
    )


def served_context(case: Case) -> tuple[int, Evidence] | None:
    """The longest context that is served, and where that is known from."""
    for setup in setups(case):
        fact = setup.in_force("context_length")
        value = as_int(fact.value) if fact else None
        if fact is not None and value:
            return value, fact.evidence()
    for boot in case.boots:
        for notice in boot.notices:
            length = as_int(notice.fields.get("context_len"))
            if length:
                return length, notice.evidence()
    target = target_config(case)
    if target is not None and case.target is not None and target.max_position_embeddings:
        length = target.max_position_embeddings
        return length, Evidence(case.target.source, None, f"max_position_embeddings: {length}")
    return None


def _scaling(value: Any) -> dict[str, Any]:
    """The parts of a rope scaling that change positions, under one spelling."""
    if not isinstance(value, dict):
        return {}
    kind = value.get("rope_type", value.get("type"))
    if kind in (None, "default"):
        return {}
    kept = {k: v for k, v in value.items() if k not in ("type", "rope_type") and v is not None}
    return {"type": kind, **{k: float(v) if isinstance(v, int) else v for k, v in kept.items()}}


def _longest_request(case: Case) -> tuple[float, Evidence] | None:
    """Tokens of the longest request that decode lines show (a mean where several run)."""
    longest, at = 0.0, None
    for boot in case.boots:
        for stretch in boot.stretches:
            for i, (tokens, running) in enumerate(
                zip(stretch.tokens, stretch.running, strict=True)
            ):
                if running and tokens / running > longest:
                    longest, at = tokens / running, (boot, stretch, i)
    return (longest, line_evidence(*at)) if at else None


def _positions_end(case: Case, limit: int) -> Finding | None:
    """The draft's positions end before what is served, by the settings or by the log itself."""
    served, longest = served_context(case), _longest_request(case)
    beyond = longest if longest is not None and longest[0] > limit else None
    if not beyond and not (served and served[0] > limit):
        return None
    told = []
    if served and served[0] > limit:
        told.append(f"{served[0]} are served")
    if beyond:
        told.append(f"requests of {beyond[0]:.0f} tokens were served")
    sources = [e for e in (served and served[1], beyond and beyond[1]) if e]
    return Finding(
        "draft-context-short",
        "high" if beyond else "medium",
        "certain",
        f"The draft knows {limit} positions, and {' and '.join(told)}.",
        (_draft(case, f"max_position_embeddings: {limit}"), *sources),
        f"Train or export the draft for the served context, or limit --context-length to {limit}.",
        "" if beyond else "accept length by context length, from a log of long requests",
    )


def draft_context_short(case: Case) -> Finding | None:
    """The draft's positions end before the served context, or rope differs from the target."""
    draft, target = draft_config(case), target_config(case)
    if draft is None or case.draft is None:
        return None
    limit = draft.max_position_embeddings
    if limit and (short := _positions_end(case, limit)):
        return short
    if target is None or case.target is None:
        return None
    differing = []
    if draft.rope_theta and target.rope_theta and draft.rope_theta != target.rope_theta:
        differing.append(f"rope_theta {draft.rope_theta:g} against {target.rope_theta:g}")
    ours, theirs = _scaling(draft.rope_scaling), _scaling(target.rope_scaling)
    if ours != theirs and (theirs or ours):
        differing.append(f"rope scaling {ours or 'none'} against {theirs or 'none'}")
    if not differing:
        return None
    return Finding(
        "draft-context-short",
        "medium",
        "possible",
        "The draft's positions are not the target's: " + "; ".join(differing) + ".",
        (
            _draft(case, f"rope_theta: {draft.rope_theta}, rope_scaling: {draft.rope_scaling}"),
            Evidence(
                case.target.source,
                None,
                f"rope_theta: {target.rope_theta}, rope_scaling: {target.rope_scaling}",
            ),
        ),
        "Use the values the draft was trained with; they need not be the target's.",
        "the training config of the draft, or accept length by context length",
    )
