"""The check of every other argument: asked on the command line, listed otherwise by the engine."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

from specdebug.diagnosis.arguments import DRAFT_TOKENS, prediction, setups
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.findings import Confidence, Evidence, Finding
from specdebug.diagnosis.strangers import strangers

# Values the engine rewrites by design without changing what is measured.
_HARMLESS = {
    DRAFT_TOKENS,
    "model_path",
    "tokenizer_path",
    "served_model_name",
    "host",
    "port",
    "random_seed",
    "log_level",
    "device",
    "speculative_draft_model_path",
    "model",
    "nccl_port",
    "dist_init_addr",
    "config",
}


def _same(asked: Any, effective: Any) -> bool:
    if asked == effective:
        return True
    try:
        return float(asked) == float(effective)
    except (TypeError, ValueError):
        pass
    for one, other in ((asked, effective), (effective, asked)):
        if isinstance(one, str) and not isinstance(other, str):
            try:
                if json.loads(one) == other:
                    return True
            except ValueError:
                pass
            if isinstance(other, list | tuple) and [str(v) for v in other] == one.split():
                return True
    text = str(asked).strip().lower(), str(effective).strip().lower()
    return text[0] == text[1] or text == ("nextn", "eagle")


def argument_overridden(case: Case) -> Finding | None:
    """Any other asked value that differs from the effective one."""
    differing: list[str] = []
    evidence: list[Evidence] = []
    confidence: Confidence = "certain"
    apart = [s.setup for s in strangers(case)]
    for setup in setups(case):
        if setup.launch is None or setup.engine == "vllm" or setup in apart:
            continue
        guess = prediction(setup)
        for key, fact in setup.launch.requested.items():
            if key in _HARMLESS or fact.value is None:
                continue
            logged = setup.logged(key)
            if logged is not None:
                unset = logged.value is None and str(fact.value).lower() in ("auto", "none", "")
                if not unset and not _same(fact.value, logged.value):
                    rule = guess.changed.get(key) if guess is not None else None
                    why = f" ({rule.why})" if rule and _same(rule.value, logged.value) else ""
                    differing.append(f"{key} {fact.value} became {logged.value}{why}")
                    evidence += [fact.evidence(), logged.evidence()]
                continue
            value = guess.changed.get(key) if guess is not None else None
            if value is not None and guess is not None and key not in guess.depends_on_release:
                if _same(fact.value, value.value):
                    continue
                differing.append(f"{key} {fact.value} will become {value.value} ({value.why})")
                evidence.append(fact.evidence())
                confidence = "likely"
    if not differing:
        return _of_another_start(case)
    return Finding(
        "argument-overridden",
        "medium",
        confidence,
        "Asked and effective arguments differ: " + "; ".join(dict.fromkeys(differing)) + ".",
        tuple(dict.fromkeys(evidence)),
        "Ask for the value that is wanted and allowed, or report the effective value with every "
        "figure.",
        "" if confidence == "certain" else "the server_args line of the log",
    )


def _of_another_start(case: Case) -> Finding | None:
    """The command and the only start there is do not fit; which of two reasons, nobody told."""
    for stranger in strangers(case):
        pairs = stranger.differing()
        if stranger.plain or not pairs:
            continue
        said = []
        for key, asked, effective in pairs:
            made = stranger.foreseen(key)
            rule = f" (which the engine's rules make {made})" if made is not None else ""
            said.append(f"{key} {asked.value}{rule} was asked for and {effective.value} is listed")
        name = PurePath(stranger.start.source).name
        return Finding(
            "argument-overridden",
            "medium",
            "possible",
            f"The command and the arguments in {name} do not fit: {'; '.join(said)}. No rule of "
            f"the engine does that: either {name} is of another start, or something changed the "
            "command before it ran. The figures here are those of the arguments listed.",
            tuple(e.evidence() for _, a, b in pairs for e in (a, b)),
            f"Give the command of the start in {name}, or the log of this command.",
            "the command that the server was really started with (launch_command of /server_info "
            "from 0.5.20 on), or this command's own log",
        )
    return None
