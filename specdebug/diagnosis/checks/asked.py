"""Checks of steps, topk, draft tokens and algorithm: asked against what is in force."""

from __future__ import annotations

from specdebug.diagnosis.arguments import (
    DRAFT_TOKENS,
    NUM_STEPS,
    TOPK,
    Setup,
    draft_config,
    prediction,
    release_knowledge,
    setups,
)
from specdebug.diagnosis.decode import rate_windows, window_reading
from specdebug.diagnosis.facts import FRAGMENT, Case
from specdebug.diagnosis.findings import Confidence, Evidence, Finding
from specdebug.sglang.patterns import regex

CHAIN_ALGORITHMS = {"EAGLE", "EAGLE3", "NEXTN", "STANDALONE"}
ADJUSTED = "speculative_num_draft_tokens is adjusted"


def flag_evidence(setup: Setup, *keys: str) -> list[Evidence]:
    return [f.evidence() for k in keys if (f := setup.asked(k)) is not None]


def _logged(setup: Setup, *keys: str) -> list[Evidence]:
    return [f.evidence() for k in keys if (f := setup.logged(k)) is not None]


def draft_tokens_overridden(case: Case) -> Finding | None:
    """With topk 1 the engine replaces the draft tokens by num_steps + 1 (0.4.6 and later)."""
    for setup in setups(case):
        finding = _overridden(setup)
        if finding is not None:
            return finding
    return _overridden_row(case)


def _overridden(setup: Setup) -> Finding | None:
    asked, steps = setup.asked_number(DRAFT_TOKENS), setup.number(NUM_STEPS)
    if asked is None or setup.engine == "vllm":
        return None
    logged = setup.logged(DRAFT_TOKENS)
    topk = setup.number(TOPK)
    if logged is not None and logged.value is not None:
        effective = setup.number(DRAFT_TOKENS)
        if effective is None or effective == asked or topk not in (None, 1):
            return None
        confidence: Confidence = "certain"
        seen = logged.evidence()
        # A row of the record may come from a write-up as well as from the engine: it has no line.
        how = "as the engine's own arguments say" if seen.line else "effective arguments on record"
    else:
        known = release_knowledge(setup)
        if topk != 1 or steps is None or asked == steps + 1 or known.surely_before("0.4.6"):
            return None
        part = setup.launch is not None and setup.launch.engine == FRAGMENT
        if setup.algorithm not in CHAIN_ALGORITHMS and not (part and setup.algorithm is None):
            return None
        effective = steps + 1
        confidence = "certain" if known.surely_from("0.4.6") else "likely"
        how = "predicted from the command"
        if setup.boot is not None:
            reading = window_reading(setup.boot, known)
            if reading is not None and effective in reading.windows:
                confidence, how = "certain", "confirmed by accept len and accept rate"
    warnings = [
        n.evidence()
        for n in (setup.boot.notices if setup.boot else ())
        if n.kind == "argument-warning" and ADJUSTED in n.text
    ]
    return Finding(
        "draft-tokens-overridden",
        "high",
        confidence,
        f"{asked} draft tokens were asked for and {effective} are in force ({how}): with topk 1 "
        f"the engine sets them to num_steps + 1 = {effective - 1} + 1.",
        (
            *flag_evidence(setup, DRAFT_TOKENS, NUM_STEPS, TOPK),
            *warnings,
            *_logged(setup, DRAFT_TOKENS),
        ),
        f"For {asked} draft tokens pass --speculative-num-steps {asked - 1}; to keep "
        f"{effective - 1} step{'s' if effective > 2 else ''} pass "
        f"--speculative-num-draft-tokens {effective}.",
        ""
        if confidence == "certain"
        else "the server_args line of the log, /server_info, or the engine's release",
    )


def _overridden_row(case: Case) -> Finding | None:
    """The same for a row of a table that states steps, topk 1 and the draft tokens asked."""
    for row in case.measured:
        asked, steps = row.draft_tokens_asked, row.num_steps
        if asked is None or steps is None or row.topk != 1 or asked == steps + 1:
            continue
        return Finding(
            "draft-tokens-overridden",
            "high",
            "likely",
            f"{row.label}: {asked} draft tokens were asked for, but with topk 1 the engine uses "
            f"num_steps + 1 = {steps + 1}.",
            (row.evidence(),),
            f"For {asked} draft tokens use num_steps {asked - 1}, or ask for {steps + 1}.",
            "the server_args line of that run's log",
        )
    return None


def effective_window_inferred(case: Case) -> Finding | None:
    """The window that accept len and accept rate betray is not the one asked for."""
    for setup in setups(case):
        if setup.boot is None:
            continue
        adaptive = setup.in_force("speculative_adaptive")
        known = release_knowledge(setup)
        reading = window_reading(setup.boot, known)
        if reading is None or (adaptive is not None and adaptive.value):
            continue
        asked = setup.asked_number(DRAFT_TOKENS)
        steps, topk = setup.asked_number(NUM_STEPS), setup.asked_number(TOPK)
        if asked is None and setup.logged(DRAFT_TOKENS) is None and steps is not None:
            asked = steps + 1 if topk in (None, 1) else None
        allowed = {asked} if asked is not None else set()
        if topk not in (None, 1) and steps is not None:
            allowed.add(steps + 1)  # 0.5.4 and 0.5.5 divide by num_steps + 1
        both = " or ".join(map(str, reading.windows))
        how = "; ".join(f"{w} if the rate is {f}" for f, w in _per_formula(reading.by_formula))
        settle = "" if len(reading.windows) == 1 else "the engine's release"
        if allowed and not allowed & set(reading.windows):
            # The override says it already, with its cause: see draft-tokens-overridden.
            chain = topk == 1 and steps is not None and steps + 1 in reading.windows
            explained = setup.logged(DRAFT_TOKENS) is not None or chain
            return Finding(
                "effective-window-inferred",
                "info" if explained else "high",
                "certain" if len(reading.windows) == 1 else "likely",
                f"{asked} tokens per verification were asked for, but accept len and accept rate "
                f"of {reading.lines} decode lines give {both} ({how}).",
                (*flag_evidence(setup, DRAFT_TOKENS), *reading.evidence),
                "Compare the server_args line with the command; with topk 1 the window is "
                "num_steps + 1.",
                settle or ("" if explained else "the server_args line of the log"),
            )
        unasked = not allowed and setup.logged(DRAFT_TOKENS) is None
        if unasked and (len(reading.windows) > 1 or reading.windows[0] == 2):
            return Finding(
                "effective-window-inferred",
                "info",
                "certain" if len(reading.windows) == 1 else "possible",
                f"Accept len and accept rate of {reading.lines} decode lines give a window of "
                f"{both} tokens per verification ({how}); what was asked for is not known.",
                reading.evidence,
                "",
                settle or "the launch command",
            )
    return _window_of_rows(case)


def _window_of_rows(case: Case) -> Finding | None:
    """The same from a row or a sentence that gives accept len and accept rate."""
    asked = next((n for s in setups(case) if (n := s.asked_number(DRAFT_TOKENS)) is not None), None)
    for row in case.measured:
        wanted = row.draft_tokens_asked or asked
        if row.accept_len is None or row.accept_rate is None or wanted is None:
            continue
        if row.workload not in (None, "table", "client-report") or row.topk not in (None, 1):
            continue
        fits = rate_windows(row.accept_len, row.accept_rate)
        windows = sorted({w for ws in fits.values() for w in ws})
        if not windows or wanted in windows or len(windows) > 3:
            continue
        how = "; ".join(f"{w} if the rate is {f}" for f, w in _per_formula(fits))
        explained = row.topk == 1 and row.num_steps is not None and row.num_steps + 1 in windows
        return Finding(
            "effective-window-inferred",
            "info" if explained else "high",
            "likely" if len(windows) == 1 else "possible",
            f"{row.label}: {wanted} tokens per verification were asked for, but accept len "
            f"{row.accept_len:g} with accept rate {row.accept_rate:g} gives {how}.",
            (row.evidence(),),
            "Compare the server_args line with the command; with topk 1 the window is "
            "num_steps + 1.",
            "the server_args line of the log",
        )
    return None


def _per_formula(found: dict[str, tuple[int, ...]]) -> list[tuple[str, str]]:
    return [(formula, " or ".join(map(str, windows))) for formula, windows in found.items()]


# Rules whose defaults are the same for every target.
_WHATEVER_TARGET = ("defaults_static", "defaults_549_all_arch", "defaults_standalone_314")


def defaults_chosen(case: Case) -> Finding | None:
    """num_steps, topk and draft tokens all left to the engine, or the block of a block drafter."""
    for setup in setups(case):
        if setup.launch is None or setup.engine == "vllm" or setup.launch.engine == FRAGMENT:
            continue  # of a command that is known in part nobody knows what it left out
        if setup.algorithm == "DFLASH":
            said, settle = _block_chosen(case, setup)
        elif setup.algorithm in CHAIN_ALGORITHMS:
            said, settle = _numbers_chosen(case, setup)
        else:
            continue
        if not said:
            continue
        return Finding(
            "defaults-chosen",
            "info",
            "certain" if not settle else "likely",
            f"The speculative arguments were left to the engine: {said}.",
            (
                *flag_evidence(setup, "speculative_algorithm"),
                *_logged(setup, NUM_STEPS, TOPK, DRAFT_TOKENS),
            ),
            "Write num_steps, topk and draft tokens on the command line before comparing runs.",
            settle,
        )
    return None


def _numbers_chosen(case: Case, setup: Setup) -> tuple[str, str]:
    """What the release makes of no number at all, and what would settle it; ("", "") if given."""
    if any(setup.asked(k) for k in (NUM_STEPS, TOPK, DRAFT_TOKENS)):
        return "", ""
    numbers = [setup.number(k) for k in (NUM_STEPS, TOPK, DRAFT_TOKENS)]
    guess = prediction(setup)
    if all(n is not None for n in numbers):
        steps, topk, tokens = numbers
        said = f"this one chooses num_steps {steps}, topk {topk}, draft tokens {tokens}"
        chosen = guess.effective.get(NUM_STEPS) if guess is not None else None
        fixed = chosen is not None and chosen.rule in _WHATEVER_TARGET
        sure = setup.logged(NUM_STEPS) is not None or case.target is not None or fixed
        return said, "" if sure else "the target's config.json: its architecture decides"
    known = release_knowledge(setup).release
    if known is not None:
        said = f"which ones {known} chooses depends on the target's architecture (5/4/8 or 3/1/4)"
        return said, "the target's config.json, or the server_args line of the log"
    said = "which ones depends on the release (5/4/8 or 3/1/4)"
    return said, "the server_args line of the log, or the engine's release"


def _block_chosen(case: Case, setup: Setup) -> tuple[str, str]:
    """The block length that nobody asked for, and what would settle it; ("", "") if asked."""
    if setup.asked(DRAFT_TOKENS) or setup.asked("speculative_dflash_block_size"):
        return "", ""
    tokens = setup.number(DRAFT_TOKENS)
    rule = "the block size of the draft's config, 16 where it names none"
    if tokens is not None:
        return f"a block has {tokens} draft tokens ({rule})", ""
    return (
        f"a block has as many draft tokens as {rule}",
        "the draft's config.json, or the server_args line of the log",
    )


_EAGLE3_NAME = regex(r"(?i)eagle-?_?3(?![\d.])")


def wrong_algorithm_for_draft(case: Case) -> Finding | None:
    """An EAGLE-3 draft started as EAGLE (its fc is skipped), or the other way round."""
    draft = draft_config(case)
    for setup in setups(case):
        algorithm = setup.algorithm
        fact = setup.logged("speculative_algorithm") or setup.asked("speculative_algorithm")
        if algorithm is None or fact is None:
            continue
        loads = [
            n
            for n in (setup.boot.notices if setup.boot else ())
            if n.kind == "model-load" and "eagle" in n.fields.get("type", "").lower()
        ]
        evidence = [fact.evidence()]
        third = any("eagle3" in n.fields["type"].lower() for n in loads)
        evidence += [n.evidence() for n in loads[:1]]
        if draft is not None and case.draft is not None:
            third = third or draft.is_eagle3
            listed = ", ".join(draft.architectures) or "no architecture"
            evidence.append(Evidence(case.draft.source, None, f"architectures: {listed}"))
        if third and algorithm in ("EAGLE", "NEXTN"):
            return Finding(
                "wrong-algorithm-for-draft",
                "critical",
                "certain",
                f"The draft is an EAGLE-3 draft and the algorithm is {algorithm}: its features are "
                "never captured, fc is skipped, and nothing can be accepted.",
                tuple(evidence),
                "Start with --speculative-algorithm EAGLE3.",
            )
        path = setup.asked("speculative_draft_model_path")
        called = str(path.value) if path is not None else ""
        if draft is None and not loads and algorithm in ("EAGLE", "NEXTN"):
            if _EAGLE3_NAME.search(called) is None:
                continue
            return Finding(
                "wrong-algorithm-for-draft",
                "medium",
                "possible",
                f"The algorithm is {algorithm} and the draft is called {called}: by its name it "
                "is an EAGLE-3 draft, which needs EAGLE3.",
                (*evidence, *flag_evidence(setup, "speculative_draft_model_path")),
                "Start with --speculative-algorithm EAGLE3 if it is one.",
                "the draft's config.json",
            )
        older = [
            a for a in (draft.architectures if draft else ()) if a.endswith("ForCausalLMEagle")
        ]
        if older and algorithm == "EAGLE3":
            return Finding(
                "wrong-algorithm-for-draft",
                "critical",
                "likely",
                f"The algorithm is EAGLE3 and the draft's architecture is {older[0]}, an EAGLE "
                "draft without auxiliary features.",
                tuple(evidence),
                "Start with --speculative-algorithm EAGLE, or give an EAGLE-3 draft.",
                "the tensor names of the draft: an EAGLE-3 draft has fc over three hidden states",
            )
    return None
