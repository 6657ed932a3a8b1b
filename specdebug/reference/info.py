"""What the server says about itself: /server_info, /model_info, /v1/models and /metrics."""

import time
from typing import Any

from specdebug.reference import NAME, NOTE
from specdebug.reference.scheduler import Scheduler
from specdebug.reference.server_args import Resolved


def server_info(resolved: Resolved, scheduler: Scheduler) -> dict[str, Any]:
    """Effective arguments flat, scheduler limits, internal_states per rank (one), version."""
    engine, totals = scheduler.engine, scheduler.totals
    state: dict[str, Any] = {
        **resolved.args,
        "last_gen_throughput": totals.gen_throughput,
        "memory_usage": {
            "weight": 0.0,
            "kvcache": round(engine.decoder.cache.gib, 2),
            "token_capacity": engine.capacity,
            "graph": 0,
        },
        "effective_max_running_requests_per_dp": 1,
    }
    if totals.average_accept_length is not None:
        state["avg_spec_accept_length"] = totals.average_accept_length
    return {
        **resolved.args,
        "status": "ready",
        "max_total_num_tokens": engine.capacity,
        "max_req_input_len": engine.context_length - 1,
        "internal_states": [state],
        "version": resolved.release.name,
        "engine": NAME,
        "note": NOTE,
    }


def model_info(resolved: Resolved) -> dict[str, Any]:
    """The served target."""
    return {
        "model_path": resolved.args["model_path"],
        "tokenizer_path": resolved.args["tokenizer_path"],
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "engine": NAME,
        "note": NOTE,
    }


def models(resolved: Resolved, scheduler: Scheduler) -> dict[str, Any]:
    """OpenAI's model list: the target alone."""
    card = {
        "id": resolved.args["served_model_name"],
        "object": "model",
        "created": int(time.time()),
        "owned_by": NAME,
        "root": resolved.args["served_model_name"],
        "parent": None,
        "max_model_len": scheduler.engine.context_length,
    }
    return {"object": "list", "data": [card]}


def metrics(resolved: Resolved, scheduler: Scheduler) -> str:
    """Prometheus text with SGLang's names; only what this engine really counts."""
    totals, capacity = scheduler.totals, scheduler.engine.capacity
    name = resolved.args["served_model_name"].replace("\\", "\\\\").replace('"', '\\"')
    name = name.replace("\n", "\\n")
    model = f'model_name="{name}"'
    rank = f'engine_type="unified",{model},moe_ep_rank="0",pp_rank="0",tp_rank="0"'
    gauges: list[tuple[str, str, float]] = [
        ("num_running_reqs", "The number of running requests.", totals.running),
        ("num_used_tokens", "The number of used tokens.", totals.used_tokens),
        ("token_usage", "The token usage.", totals.used_tokens / capacity),
        ("gen_throughput", "The generation throughput (token/s).", totals.gen_throughput),
        ("num_queue_reqs", "The number of requests in the waiting queue.", scheduler.queued),
        ("max_total_num_tokens", "Tokens the KV cache can hold.", capacity),
        ("spec_accept_length", "Accept length of the last decode line.", totals.accept_length),
        ("spec_accept_rate", "Accept rate of the last decode line.", totals.accept_rate),
    ]
    counters: list[tuple[str, str, float]] = [
        ("prompt_tokens_total", "Number of prefill tokens processed.", totals.prompt_tokens),
        ("generation_tokens_total", "Generation tokens processed.", totals.generated_tokens),
        ("num_requests_total", "Number of requests processed.", totals.requests),
        ("num_aborted_requests_total", "Number of requests aborted.", totals.aborted),
    ]
    lines = []
    for key, words, value in gauges:
        lines += _metric(key, words, "gauge", rank, value)
    for key, words, value in counters:
        lines += _metric(key, words, "counter", model, value)
    latency = "sglang:e2e_request_latency_seconds"
    lines += [
        f"# HELP {latency} End-to-end request latency in seconds",
        f"# TYPE {latency} summary",
        f"{latency}_sum{{{model}}} {float(totals.latency_seconds)}",
        f"{latency}_count{{{model}}} {float(totals.requests)}",
    ]
    return "\n".join(lines) + "\n"


def _metric(key: str, words: str, kind: str, labels: str, value: float) -> list[str]:
    full = f"sglang:{key}"
    return [
        f"# HELP {full} {words}",
        f"# TYPE {full} {kind}",
        f"{full}{{{labels}}} {float(value)}",
    ]
