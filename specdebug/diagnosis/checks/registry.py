"""The list of all checks, with what each one needs; the order is that of facts, not of severity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specdebug.diagnosis import needs
from specdebug.diagnosis.checks import (
    accepting,
    asked,
    capturable,
    costs,
    counting,
    differing,
    draft_files,
    drift,
    gpus,
    layers,
    life,
    outputs,
    prompts,
    refused,
    serving,
)
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.findings import Finding

__all__ = ["CHECKS", "Check"]


@dataclass(frozen=True, slots=True)
class Check:
    """One code: the function that decides it, and what the case lacks for it (None: nothing)."""

    code: str
    run: Callable[[Case], Finding | None]
    lacks: Callable[[Case], str | None]


CHECKS: tuple[Check, ...] = (
    Check("draft-tokens-overridden", asked.draft_tokens_overridden, needs.command_or_rows),
    Check("effective-window-inferred", asked.effective_window_inferred, needs.rates),
    Check("argument-overridden", differing.argument_overridden, needs.command),
    Check("defaults-chosen", asked.defaults_chosen, needs.command),
    Check("arguments-rejected", refused.arguments_rejected, needs.command),
    Check("wrong-algorithm-for-draft", asked.wrong_algorithm_for_draft, needs.draft_and_algorithm),
    Check("running-requests-capped", serving.running_requests_capped, needs.limit_and_load),
    Check("cuda-graph-off", serving.cuda_graph_off, needs.log_or_command),
    Check("draft-attention-backend", serving.draft_attention_backend, needs.draft_and_command),
    Check("simulated-acceptance", serving.simulated_acceptance, needs.nothing),
    Check("aux-layer-mismatch", layers.aux_layer_mismatch, needs.draft_and_features),
    Check("aux-layer-convention", layers.aux_layer_convention, needs.draft_and_target),
    Check("aux-layers-defaulted", layers.aux_layers_defaulted, needs.draft),
    Check("aux-layer-not-capturable", capturable.aux_layer_not_capturable, needs.draft_or_log),
    Check("fc-width-mismatch", draft_files.fc_width_mismatch, needs.header),
    Check("draft-vocab-map", draft_files.draft_vocab_map, needs.header),
    Check("draft-weights-missing", draft_files.draft_weights_missing, needs.header),
    Check("draft-norm-unread", draft_files.draft_norm_unread, needs.draft),
    Check("draft-context-short", draft_files.draft_context_short, needs.draft_and_target),
    Check("dead-draft", accepting.dead_draft, needs.acceptance),
    Check("acceptance-below-training", accepting.acceptance_below_training, needs.accuracy),
    Check("acceptance-below-reference", accepting.acceptance_below_reference, needs.reference),
    Check("acceptance-collapses", accepting.acceptance_collapses, needs.by_position),
    Check("first-position-low", accepting.first_position_low, needs.by_position),
    Check("acceptance-decays", drift.acceptance_decays, needs.decode_lines),
    Check("acceptance-uneven", drift.acceptance_uneven, needs.several_ranks),
    Check("degenerate-output", outputs.degenerate_output, needs.acceptance_and_window),
    Check("slower-than-baseline", costs.slower_than_baseline, needs.baseline_and_run),
    Check("speculation-cannot-win", costs.speculation_cannot_win, needs.baseline_and_step),
    Check("below-break-even", costs.below_break_even, needs.baseline_and_step),
    Check("step-overhead-unexplained", costs.step_overhead_unexplained, needs.two_depths),
    Check("draft-too-deep", costs.draft_too_deep, needs.profile_and_cost),
    Check("batch-too-large", serving.batch_too_large, needs.window_and_load),
    Check("prompts-not-representative", prompts.prompts_not_representative, needs.client),
    Check("client-counts-chunks", counting.client_counts_chunks, needs.client_and_log),
    Check("too-few-samples", counting.too_few_samples, needs.nothing),
    Check("warm-up-counted", counting.warm_up_counted, needs.decode_lines),
    Check("several-boots", counting.several_boots, needs.log),
    Check("accept-rate-not-comparable", counting.accept_rate_not_comparable, needs.nothing),
    Check("out-of-memory", life.out_of_memory, needs.log),
    Check("server-died", life.server_died, needs.log),
    Check("start-timeout", life.start_timeout, needs.log),
    Check("watchdog", life.watchdog, needs.log),
    Check("requests-retracted", life.requests_retracted, needs.log),
    Check("port-in-use", life.port_in_use, needs.log),
    Check("gpu-busy", life.gpu_busy, needs.log),
    Check("missing-model", life.missing_model, needs.log),
    Check("gpu-throttled", gpus.gpu_throttled, needs.gpu_samples),
    Check("gpu-lost", gpus.gpu_lost, needs.gpu_samples),
    Check("gpu-memory-errors", gpus.gpu_memory_errors, needs.gpu_samples),
)
