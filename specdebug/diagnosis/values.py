"""The named figures of an answer, under the names of docs/check-json.md; no judgement."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from specdebug.diagnosis.arguments import (
    DRAFT_TOKENS,
    NUM_STEPS,
    TOPK,
    Setup,
    as_int,
    draft_config,
    prediction,
    release_knowledge,
    setups,
    target_config,
)
from specdebug.diagnosis.checks import vllm_layers
from specdebug.diagnosis.checks.capture import layers_of
from specdebug.diagnosis.checks.counting import chunk_counted
from specdebug.diagnosis.checks.draft_files import header_alone, report_of, served_context
from specdebug.diagnosis.checks.serving import SPEC_LIMITS, asked_concurrency, reset_notices
from specdebug.diagnosis.decode import (
    WindowReading,
    busy_indices,
    rate_windows,
    summary_of,
    window_reading,
)
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.figures import (
    Run,
    base_step_ms,
    baseline,
    baseline_of,
    comparable,
    cost,
    primary,
    runs,
    speculative_runs,
)
from specdebug.diagnosis.profile import profile
from specdebug.diagnosis.strangers import asker
from specdebug.eagle.speedup import ceiling_tok_s
from specdebug.measure import acceptance

__all__ = ["values_of"]


@lru_cache(maxsize=16)
def _values(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in (_arguments, _measured, _costs, _acceptance, _files, _layers, _counts):
        found.update({k: v for k, v in part(case).items() if v is not None and v != []})
    return {k: _rounded(v) for k, v in found.items()}


def values_of(case: Case) -> dict[str, Any]:
    """Every figure the inputs allow: floats with four significant decimals, lists, integers."""
    return dict(_values(case))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, list | tuple):
        return [_rounded(v) for v in value]
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    return value


def _main_setup(case: Case) -> Setup | None:
    run = primary(case)
    if run is not None and run.setup is not None:
        return run.setup
    found = setups(case)
    return found[0] if found else None


def _arguments(case: Case) -> dict[str, Any]:
    setup = _main_setup(case)
    main = primary(case)
    out: dict[str, Any] = {}
    if main is not None and len(speculative_runs(case)) > 1:
        out["run"] = main.label
    wanting = asker(case, setup) if setup else None
    asked = wanting.asked_number(DRAFT_TOKENS) if wanting else None
    if asked is None:
        rows = [r for r in case.measured if r.draft_tokens_asked is not None]
        asked = rows[0].draft_tokens_asked if rows else None
    out["requested_draft_tokens"] = asked
    effective = setup.number(DRAFT_TOKENS) if setup else None
    logged = setup is not None and setup.logged(DRAFT_TOKENS) is not None
    if setup is not None and setup.boot is not None:
        reading = window_reading(setup.boot, release_knowledge(setup))
        if reading is not None and not _divides_by_steps(setup, reading):
            if len(reading.windows) > 1:
                out["window_candidates"] = list(reading.windows)
            elif not logged:
                effective = reading.windows[0]
    if effective is None and main is not None and not main.window_assumed:
        effective = main.window
    if effective is None or (effective == asked and not logged):
        row = next((r for r in case.measured if r.accept_len and r.accept_rate), None)
        fits = rate_windows(row.accept_len or 1.0, row.accept_rate or 0.0) if row else {}
        windows = sorted({w for ws in fits.values() for w in ws})
        if len(windows) == 1:
            effective = windows[0]
        elif 1 < len(windows) < 4:
            out["window_candidates"] = windows
    if effective is None and main is not None and main.window:
        out.setdefault("window_candidates", [main.window])  # if topk is 1, which nobody says
    out["effective_draft_tokens"] = None if setup and _refused(setup) else effective
    if setup is not None and wanting is not None:
        out["requested_num_steps"] = wanting.asked_number(NUM_STEPS)
        out["num_steps"] = setup.number(NUM_STEPS)
        out["topk"] = setup.number(TOPK)
        out["algorithm"] = setup.algorithm
        for key in ("max_running_requests", "cuda_graph_max_bs", "page_size", "tp_size", "dp_size"):
            fact = setup.in_force(key)
            out[key] = as_int(fact.value) if fact else None
            wanted = wanting.asked_number(key)
            if wanted is not None:
                out[f"requested_{key}"] = wanted
        if out["max_running_requests"] is None and reset_notices(setup):
            out["max_running_requests"] = SPEC_LIMITS[0]
        known = release_knowledge(setup)
        out["release"] = str(known.release) if known.release else None
        backend = setup.in_force("attention_backend")
        out["attention_backend"] = str(backend.value) if backend and backend.value else None
    else:
        out["release"] = case.engine_version.value if case.engine_version else None
        out["num_steps"] = main.num_steps if main is not None else None
    if setup is not None and out.get("num_steps") is None and main is not None:
        out["num_steps"] = main.num_steps
    return out


def _refused(setup: Setup) -> bool:
    """Whether every release that is possible refuses to start: then nothing is in force."""
    guess = prediction(setup) if setup.boot is None else None
    if guess is None:
        return False
    return bool(guess.rejections) or bool(
        guess.readings and all(r.rejections for r in guess.readings)
    )


def _divides_by_steps(setup: Setup, reading: WindowReading) -> bool:
    """Whether the rate of a tree was divided by num_steps + 1 (0.5.4 and 0.5.5), not its window."""
    steps, topk = setup.number(NUM_STEPS), setup.number(TOPK)
    newer = release_knowledge(setup).surely_from("0.5.6")
    tree = topk is not None and topk > 1 and steps is not None
    return tree and not newer and (steps or 0) + 1 in reading.windows


def _measured(case: Case) -> dict[str, Any]:
    main = primary(case)
    out: dict[str, Any] = {}
    wanted = asked_concurrency(case)
    if wanted is not None:
        out["concurrency"] = int(wanted[0]) if wanted[0] == int(wanted[0]) else wanted[0]
    if main is None:
        plain = next((r for r in runs(case) if r.tok_s), None)
        if plain is not None:
            out["running_requests"] = plain.running if plain.running_known else None
            out["tok_s"] = plain.tok_s
        return out
    known = next((r for r in speculative_runs(case) if r.accept_len), main)
    out["accept_len"] = main.accept_len or known.accept_len
    out["accept_rate"] = _accept_rate(case, main)
    out["tok_s"] = main.tok_s
    if main.running_known:
        out["running_requests"] = main.running
    out["drafts"] = main.drafts
    if main.setup is not None and main.setup.boot is not None:
        parts = [p for p in summary_of(main.setup.boot) if p.accept_len is not None]
        if len(parts) > 1:
            out["accept_len_by_rank"] = {p.rank: p.accept_len for p in parts}
        told = [p.queue_max for p in parts if p.running is not None]
        out["queue_requests"] = max(told, default=None)
    counted = chunk_counted(case)
    measured = [r for r in runs(case) if r.tok_s and r.speculative]
    clients = [r for r in measured if r.origin == "row" and r.counted_by == "client"]
    # The decode lines first: a gauge of /metrics holds the newest of them only.
    servers = sorted(
        (r for r in measured if r.counted_by == "server"), key=lambda r: r.origin != "log"
    )
    if counted:
        out["client_tok_s"], out["server_tok_s"] = counted[0].client.tok_s, counted[0].server.tok_s
    else:
        out["client_tok_s"] = clients[0].tok_s if clients else None
        out["server_tok_s"] = servers[0].tok_s if servers else None
    return out


def _accept_rate(case: Case, main: Run) -> float | None:
    """The rate as it reads, its definition depending on the release: over the busy lines weighted
    by running requests, as the accept length is, or the row's own."""
    if main.setup is not None and main.setup.boot is not None:
        rates = [
            (s.accept_rate[i], s.running[i])
            for s in main.setup.boot.stretches
            for i in busy_indices(s)
            if not math.isnan(s.accept_rate[i])
        ]
        weight = math.fsum(w for _, w in rates)
        return math.fsum(rate * w for rate, w in rates) / weight if weight else None
    rows = (r.accept_rate for r in case.measured if r.accept_len == main.accept_len)
    return next((rate for rate in rows if rate is not None), None)


def _costs(case: Case) -> dict[str, Any]:
    main = primary(case)
    base = baseline_of(case, main) if main else baseline(case)
    out: dict[str, Any] = {}
    if base is not None:
        out["baseline_tok_s"] = base.tok_s
        alone = base.step_ms if base.running_known else None  # no load is known at all
        out["baseline_step_ms"] = base_step_ms(base, main) if main else alone
    if main is not None:
        out["step_ms"] = main.step_ms
        if main.step_ms is not None and main.window:
            out["ceiling_tok_s"] = ceiling_tok_s(main.window, main.step_ms, main.running)
        plain = out.get("baseline_step_ms")
        fits = base is not None and comparable(base, main)  # at another load neither says anything
        if main.step_ms is not None and plain and fits:
            out["break_even_accept_len"] = main.step_ms / plain
        if base is not None and base.tok_s and main.tok_s and fits:
            out["speedup"] = main.tok_s / base.tok_s
    line = cost(case)
    if line is not None:
        out["ms_per_draft_step"] = line.slope_ms
        out["fixed_step_ms"] = line.fixed_ms
        out["unexplained_overhead_ms"] = line.overhead_ms
    every = [_run_row(r) for r in runs(case)]
    if len(every) > 1:
        out["runs"] = every
    return out


def _run_row(run: Run) -> dict[str, Any]:
    row = {
        "label": run.label,
        "num_steps": run.num_steps,
        "window": None if run.window_assumed else run.window,
        "tok_s": run.tok_s,
        "accept_len": run.accept_len,
        "running_requests": run.running if run.running_known else None,
        "step_ms": run.step_ms,
    }
    return {k: v for k, v in row.items() if v is not None}


def _acceptance(case: Case) -> dict[str, Any]:
    out: dict[str, Any] = {}
    found, main = profile(case), primary(case)
    if found is not None:
        out["first_position_acceptance"] = found.conditional[0]
        out["conditional_after_first"] = found.after_first
        if found.measured:
            out["conditional_acceptance"] = list(found.conditional)
        elif len(found.conditional) > 1:
            out["later_position_acceptance"] = found.conditional[1]
    accuracy = case.training.val_accuracy
    steps = main.num_steps if main is not None else None
    if steps is None:
        setup = _main_setup(case)
        steps = setup.number(NUM_STEPS) if setup else None
    out["training_accuracy"] = accuracy
    if accuracy is not None and steps:
        out["expected_accept_len"] = acceptance.iid_accept_len(accuracy, steps)
    if case.positions and out.get("accept_len") is None:
        lengths = [p.accept_len for p in case.positions if p.accept_len]
        if lengths and (main is None or main.accept_len is None):
            out["accept_len"] = lengths[0]
    return out


def _files(case: Case) -> dict[str, Any]:
    out: dict[str, Any] = {}
    draft, target, report = (
        draft_config(case),
        target_config(case),
        report_of(case) or header_alone(case),
    )
    if draft is not None:
        out["draft_vocab_size"] = draft.draft_vocab_size
        out["draft_max_position_embeddings"] = draft.max_position_embeddings
        out["draft_rope_theta"] = draft.rope_theta
        out["vocab_size"] = draft.vocab_size
        out["aux_layer_ids"] = list(draft.aux_layer_ids) if draft.aux_layer_ids else None
        out["written_aux_layer_ids"] = (
            list(draft.written_aux_layer_ids) if draft.written_aux_layer_ids else None
        )
    if target is not None:
        out["vocab_size"] = target.vocab_size or out.get("vocab_size")
        out["target_max_position_embeddings"] = target.max_position_embeddings
        out["target_rope_theta"] = target.rope_theta
        out["target_hidden_size"] = target.hidden_size
        out["target_num_layers"] = target.num_hidden_layers
    if report is not None:
        out["fc_in"] = report.fc_in
        out["expected_fc_in"] = report.expected_fc_in if draft is not None else None
        out.setdefault("draft_vocab_size", report.draft_vocab)
        out.setdefault("vocab_size", report.vocab)
    served = served_context(case)
    out["served_context"] = served[0] if served else None
    return out


def _layers(case: Case) -> dict[str, Any]:
    layers = layers_of(case)
    out: dict[str, Any] = {}
    if layers is None:
        served = {reading.layers for reading in vllm_layers.readings(case)}
        return {"captured_layers": list(served.pop())} if len(served) == 1 else out
    if layers.capture is not None:
        out["captured_layers"] = list(layers.capture.inputs_of_layers)
    distinct = {c.inputs_of_layers for _, _, c in layers.everywhere}
    if len(distinct) > 1:
        for first, last, capture in layers.everywhere:
            for release in (first, last):
                name = "captured_layers_" + str(release).replace(".", "_")
                out[name] = list(capture.inputs_of_layers)
    if case.training.features is not None:
        out["trained_layers"] = [0 if f == "embed" else f for f in case.training.features]
    return out


def _counts(case: Case) -> dict[str, Any]:
    files: dict[str, int] = {}
    for boot in case.boots:
        files[boot.source] = files.get(boot.source, 0) + 1
    return {"boots": max(files.values(), default=None)}
