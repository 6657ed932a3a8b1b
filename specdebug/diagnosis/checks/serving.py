"""Checks of how the server runs: request limit, CUDA graphs, draft attention, simulation."""

from __future__ import annotations

from specdebug.diagnosis.arguments import (
    NUM_STEPS,
    Setup,
    as_int,
    draft_config,
    setups,
    target_config,
)
from specdebug.diagnosis.decode import DecodeSummary, summary_of, together
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.figures import baseline, comparable, runs
from specdebug.diagnosis.findings import Evidence, Finding

MAX_RUNNING = "max_running_requests"
SPEC_LIMITS = (48, 32)  # 32 in 0.4.4 only
GRAPH_MAX = "cuda_graph_max_bs"
MLA_BACKENDS = {"flashmla", "cutlass_mla", "trtllm_mla", "flashmla_kv", "tokenspeed_mla"}
RESET = "Max running requests is reset"


def asked_concurrency(case: Case) -> tuple[float, Evidence] | None:
    """How many requests the client keeps in flight, the largest figure any input names."""
    found: list[tuple[float, Evidence]] = []
    if case.concurrency is not None:
        found.append((float(case.concurrency.value), case.concurrency.evidence()))
    fact = case.bench_flags.get("max_concurrency")
    if fact is not None:
        found.append((float(fact.value), fact.evidence()))
    found += [(row.concurrency, row.evidence()) for row in case.measured if row.concurrency]
    return max(found, key=lambda pair: pair[0]) if found else None


def reset_notices(setup: Setup) -> list[Evidence]:
    """Where the log says that speculation set the limit."""
    return [
        n.evidence()
        for n in (setup.boot.notices if setup.boot else ())
        if n.kind == "argument-warning" and RESET in n.text
    ]


def _limit(setup: Setup) -> tuple[int, list[Evidence]] | None:
    """The limit that speculation set because nobody asked for one, in requests per rank."""
    if setup.asked(MAX_RUNNING) is not None:
        return None
    notices = reset_notices(setup)
    if setup.algorithm is None and not notices:
        return None
    # Without the engine's list the release's own rule says what the limit is.
    logged = setup.logged(MAX_RUNNING) or setup.in_force(MAX_RUNNING)
    value = as_int(logged.value) if logged else None
    if not notices and setup.launch is None:
        return None  # without the command nobody knows whether the limit was asked for
    if value is None and notices:
        value = SPEC_LIMITS[0]
    if value not in SPEC_LIMITS:
        return None
    limit = value
    ranks = setup.in_force("dp_size")
    dp = (as_int(ranks.value) if ranks else None) or 1
    return max(limit // dp, 1), notices + ([logged.evidence()] if logged else [])


def running_requests_capped(case: Case) -> Finding | None:
    """Nobody asked for a limit, speculation set one, and the load is above it."""
    for setup in setups(case):
        limit = _limit(setup)
        if limit is None:
            continue
        cap, evidence = limit
        parts = summary_of(setup.boot) if setup.boot is not None else ()
        pinned = [p for p in parts if p.queue_max > 0 and p.running_max >= 0.95 * cap]
        wanted = asked_concurrency(case)
        dp = max(len(parts), 1)
        above = wanted is not None and wanted[0] > cap * dp
        if not pinned and not above:
            continue
        said = []
        if pinned:
            said.append(
                f"up to {max(p.queue_max for p in pinned):g} requests wait behind "
                f"{max(p.running_max for p in pinned):g} running ones"
            )
        if wanted is not None and above:
            said.append(f"the client sends {wanted[0]:g} at once")
            evidence = [*evidence, wanted[1]]
        sure = bool(pinned) or setup.logged(MAX_RUNNING) is not None
        return Finding(
            "running-requests-capped",
            "high",
            "certain" if sure else "likely",
            f"Nobody set --max-running-requests, so speculation limits the server to {cap} "
            f"requests{' per rank' if dp > 1 else ''}, and " + " and ".join(said) + ": a "
            "comparison with an unlimited baseline is not like for like.",
            (*evidence, *(e for p in pinned[:1] for e in p.evidence)),
            "Set --max-running-requests to the load on both sides, or measure the baseline with "
            f"{cap}.",
            "" if sure else "the server_args line of the log",
        )
    return None


def cuda_graph_off(case: Case) -> Finding | None:
    """Decode steps run eagerly: disabled, uncovered batch, or a draft never captured."""
    for setup in setups(case):
        if setup.on_cpu or setup.engine == "vllm":
            continue
        parts = summary_of(setup.boot) if setup.boot is not None else ()
        whole = together(parts) if parts else None
        for reason in (_disabled, _uncovered, _eager_lines, _draft_uncaptured):
            finding = reason(setup, whole)
            if finding is not None:
                return finding
    return None


def _finding(statement: str, evidence: list[Evidence], fix: str, sure: bool = True) -> Finding:
    return Finding(
        "cuda-graph-off",
        "high",
        "certain" if sure else "likely",
        statement,
        tuple(dict.fromkeys(evidence)),
        fix,
        "" if sure else "the share of decode lines that say `cuda graph: False`",
    )


def _disabled(setup: Setup, whole: DecodeSummary | None) -> Finding | None:
    fact = setup.in_force("disable_cuda_graph")
    if fact is None or fact.value is not True or (whole is not None and whole.graph_off == 0):
        return None
    evidence = [fact.evidence(), *(whole.evidence if whole else ())]
    return _finding(
        "CUDA graphs are disabled: every step launches its kernels one by one.",
        evidence,
        "Drop --disable-cuda-graph; lower --mem-fraction-static if memory was the reason.",
    )


def _graph_max(setup: Setup) -> tuple[int, Evidence] | None:
    """The largest batch a graph was captured for, from the limit or from the list of batches."""
    for key in (GRAPH_MAX, "cuda_graph_bs", "cuda_graph_bs_decode"):
        fact = setup.logged(key)
        if fact is None or fact.value is None:
            fact = setup.asked(key)
        if fact is None or fact.value is None:
            continue
        value = as_int(fact.value)
        if value is None and isinstance(fact.value, list | tuple):
            sizes = [n for n in map(as_int, fact.value) if n is not None]
            value = max(sizes, default=None)
        if value is not None:
            return value, fact.evidence()
    return None


def _uncovered(setup: Setup, whole: DecodeSummary | None) -> Finding | None:
    limit = _graph_max(setup)
    if limit is None:
        return None
    running = whole.running if whole else None
    if whole is None or running is None:
        wanted = asked_concurrency(setup.case)
        cap = setup.in_force(MAX_RUNNING)
        most = as_int(cap.value) if cap else None
        if wanted is None:
            return None
        load = min(wanted[0], most) if most else wanted[0]
        if load <= limit[0]:
            return None
        return _finding(
            f"Graphs cover at most {limit[0]} requests and the client sends {wanted[0]:g} at once.",
            [limit[1], wanted[1]],
            f"Raise --cuda-graph-max-bs to at least {load:g}.",
            sure=False,
        )
    per_rank = max((p.running or 0) for p in summary_of(setup.boot)) if setup.boot else running
    if per_rank <= limit[0] or (whole.graph_off is not None and whole.graph_off <= 0.05):
        return None
    off = (
        ""
        if whole.graph_off is None
        else f"; {100 * whole.graph_off:.0f} % of the busy decode lines say so"
    )
    return _finding(
        f"Graphs were captured for at most {limit[0]} requests and {per_rank:g} run at once, so "
        f"steps run eagerly{off}.",
        [limit[1], *whole.evidence],
        f"Raise --cuda-graph-max-bs to at least {per_rank:g}.",
    )


def _eager_lines(setup: Setup, whole: DecodeSummary | None) -> Finding | None:
    if whole is None or whole.graph_off is None or whole.graph_off <= 0.05:
        return None
    return _finding(
        f"{100 * whole.graph_off:.0f} % of {whole.busy} busy decode lines ran without a CUDA "
        "graph.",
        list(whole.evidence),
        "Look for a failed capture in the log, and compare --cuda-graph-max-bs with the running "
        "requests.",
    )


def _draft_uncaptured(setup: Setup, whole: DecodeSummary | None) -> Finding | None:
    """The target's graphs were captured, the draft's were not; only a whole log can tell."""
    boot, steps = setup.boot, setup.number(NUM_STEPS)
    if boot is None or boot.excerpt or not boot.ready or steps is None or steps < 2:
        return None
    if setup.algorithm not in ("EAGLE", "EAGLE3", "STANDALONE"):
        return None
    kinds = {n.kind for n in boot.notices}
    target = [n for n in boot.notices if n.kind == "capture-end"]
    if not target or kinds & {"capture-draft-begin", "capture-draft-end"}:
        return None
    return _finding(
        "The log shows the target's CUDA graphs being captured and none for the draft: its "
        f"{steps} forwards per step run eagerly.",
        [target[0].evidence()],
        "Compare the attention backend of the draft with those that support draft graphs.",
        sure=False,
    )


def draft_attention_backend(case: Case) -> Finding | None:
    """A backend for latent attention is inherited by a draft with ordinary attention."""
    draft, target = draft_config(case), target_config(case)
    if draft is None or case.draft is None or draft.is_mla:
        return None
    if target is not None and not target.is_mla:
        return None
    for setup in setups(case):
        own = setup.in_force("speculative_draft_attention_backend")
        backend = setup.in_force("decode_attention_backend")
        if backend is None or backend.value is None:
            backend = setup.in_force("attention_backend")
        if backend is None or str(backend.value) not in MLA_BACKENDS:
            continue
        if own is not None and own.value is not None:
            continue
        return Finding(
            "draft-attention-backend",
            "high",
            "likely",
            f"The target's attention backend {backend.value} is for latent attention, and the "
            f"draft inherits it with {draft.num_key_value_heads} key-value heads of ordinary "
            "attention.",
            (
                backend.evidence(),
                Evidence(
                    case.draft.source, None, f"num_key_value_heads: {draft.num_key_value_heads}"
                ),
            ),
            "Set --speculative-draft-attention-backend, for example to triton or fa3.",
            "one run with the draft's backend set explicitly",
        )
    return None


def simulated_acceptance(case: Case) -> Finding | None:
    """SGLANG_SIMULATE_ACC_LEN is set: acceptance is made up."""
    facts = {**case.env}
    for launch in case.launches:
        facts.update(launch.env)
    fact = facts.get("SGLANG_SIMULATE_ACC_LEN")
    evidence = []
    if fact is not None and str(fact.value).strip() not in ("", "-1", "0", "None"):
        evidence.append(fact.evidence())
    for boot in case.boots:
        evidence += [n.evidence() for n in boot.notices if n.kind == "simulated-acceptance"]
    if not evidence:
        return None
    return Finding(
        "simulated-acceptance",
        "critical",
        "certain",
        f"Acceptance is simulated ({evidence[0].text[:80]}): accept lengths and outputs are not "
        "real, only the reachable speed is measured.",
        tuple(evidence),
        "Unset SGLANG_SIMULATE_ACC_LEN and measure again.",
    )


def batch_too_large(case: Case) -> Finding | None:
    """Running requests times window leave no spare compute, and speculation gains nothing."""
    base = baseline(case)
    for run in runs(case):
        if not run.speculative or not run.window or not run.running_known or not run.tok_s:
            continue
        tokens = run.running * run.window
        if tokens <= 64:
            continue
        gain = None
        if base is not None and base.tok_s and comparable(base, run):
            gain = run.tok_s / base.tok_s
        if gain is not None and gain > 1.02:
            continue
        if gain is None and tokens <= 256:
            continue
        large = tokens > 256
        said = "and the gain is not known" if gain is None else f"for {gain:.2f} times the baseline"
        return Finding(
            "batch-too-large",
            "medium" if large and gain is not None else "info",
            "likely" if large and gain is not None else "possible",
            f"{run.running:g} requests times {run.window} tokens make {tokens:g} tokens per "
            f"verification, {said}.",
            run.evidence,
            "Use fewer draft steps at this load, or switch speculation off above a batch size.",
            "a baseline at the same concurrency" if gain is None else "one run with num_steps 1",
        )
    return None
