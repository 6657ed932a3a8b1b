"""The named figures and what they are called after: who counted them, and from how many drafts."""

from typing import Any

import pytest

from specdebug.diagnosis.diagnose import diagnose
from specdebug.diagnosis.facts import Input
from specdebug.diagnosis.gather import build_case

GAUGE = b"sglang:spec_accept_length 1.6\nsglang:gen_throughput 56.8\nsglang:num_running_reqs 1\n"
VLLM = (
    b"INFO 01-19 11:30:40 [metrics.py:1] SpecDecoding metrics: Mean acceptance length: 2.10, "
    b"Accepted: 110 tokens, Drafted: 300 tokens, Per-position acceptance rate: 0.600, 0.300, 0.200,"
    b" Avg Draft acceptance rate: 36.7%\n"
)


def test_a_gauge_is_the_server_s_figure_and_no_client_s() -> None:
    values = diagnose(build_case([Input("metrics.txt", GAUGE)])).values
    assert values["server_tok_s"] == 56.8
    assert "client_tok_s" not in values


def test_what_a_client_printed_is_the_client_s_figure() -> None:
    report = b"eagle3: output throughput 90 tok/s, accept length 2.1\n"
    values = diagnose(build_case([Input("bench.txt", report)])).values
    assert values["client_tok_s"] == 90
    assert "server_tok_s" not in values


def test_one_input_with_few_drafts_is_named_once() -> None:
    found = diagnose(build_case([Input("folder/pasted.txt", VLLM)])).findings
    few = next(f for f in found if f.code == "too-few-samples")
    assert few.statement.count("pasted.txt") == 1


def test_requests_running_and_waiting_are_named_only_where_the_log_tells_of_them() -> None:
    engine = (
        b"INFO 01-19 11:30:39 [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s, "
        b"Avg generation throughput: 80.0 tokens/s, Running: 3 reqs, Waiting: 2 reqs, "
        b"GPU KV cache usage: 1.0%\n"
    )
    silent = diagnose(build_case([Input("vllm.log", VLLM * 3)])).values
    assert {"running_requests", "queue_requests"}.isdisjoint(silent)
    told = diagnose(build_case([Input("vllm.log", (engine + VLLM) * 3)])).values
    assert (told["running_requests"], told["queue_requests"]) == (3, 2)


def values_of(text: str) -> dict[str, Any]:
    return dict(diagnose(build_case([Input("pasted.txt", text.encode())])).values)


def test_steps_without_topk_leave_the_window_open() -> None:
    told = "No speculation: 88 tok/s. With MTP (steps 3{}): 61 tok/s and accept length 1.7. bs=1.\n"
    open_, known = values_of(told.format("")), values_of(told.format(", topk 1"))
    assert open_["window_candidates"] == [4]
    assert "effective_draft_tokens" not in open_
    assert known["effective_draft_tokens"] == 4
    assert "window_candidates" not in known
    # Three steps yield four tokens at most, in a tree too.
    assert open_["ceiling_tok_s"] == known["ceiling_tok_s"] == pytest.approx(143.5, abs=0.1)


def test_a_plain_run_of_unknown_load_has_no_step_time() -> None:
    table = "| run | tok/s |{}\n|---|---|{}\n| baseline | 611.4 |{}\n"
    open_ = values_of(table.format("", "", ""))
    assert open_["baseline_tok_s"] == 611.4
    assert {"running_requests", "baseline_step_ms"}.isdisjoint(open_)
    known = values_of(table.format(" concurrency |", "---|", " 1 |"))
    assert (known["running_requests"], known["baseline_step_ms"]) == (1, pytest.approx(1.6356))


def test_the_run_behind_the_figures_is_named_where_there_are_several() -> None:
    rows = b"eagle3 steps=1: output throughput 90 tok/s, accept length 1.7\n"
    assert "run" not in diagnose(build_case([Input("bench.txt", rows)])).values
    rows += b"eagle3 steps=3: output throughput 99 tok/s, accept length 2.3\n"
    values = diagnose(build_case([Input("bench.txt", rows)])).values
    assert "steps=1" in values["run"]
    assert values["accept_len"] == 1.7


def test_nothing_is_in_force_where_every_release_refuses_the_arguments() -> None:
    command = b"sglang serve --speculative-algorithm EAGLE3 --speculative-num-draft-tokens 16"
    values = diagnose(build_case([Input("command.txt", command)])).values
    assert values["requested_draft_tokens"] == 16
    assert "effective_draft_tokens" not in values
    whole = command + b" --speculative-num-steps 3 --speculative-eagle-topk 1"
    values = diagnose(build_case([Input("command.txt", whole)])).values
    assert values["effective_draft_tokens"] == 4


def test_length_and_rate_are_averaged_over_the_same_lines() -> None:
    line = "[2026-01-19 11:30:4{}] Decode batch, #running-req: 1, #token: 9, accept len: {}, "
    line += "accept rate: {}, cuda graph: True, gen throughput (token/s): 90.00, #queue-req: 0\n"
    log = "".join(line.format(n, "3.00", "0.75") for n in range(3))
    log += "".join(line.format(n, "1.00", "0.25") for n in range(3, 9))
    values = diagnose(build_case([Input("server.log", log.encode())])).values
    assert values["accept_rate"] == pytest.approx(values["accept_len"] / 4, abs=1e-3)


def test_runs_under_other_loads_have_no_speedup() -> None:
    table = "| run | concurrency | output tok/s | accept len |\n|---|---|---|---|\n"
    table += "| baseline | 16 | 900 | - |\n| eagle3 | {} | {} | 2.7 |\n"

    def values(load: int, tok_s: int) -> dict[str, Any]:
        text = table.format(load, tok_s).encode()
        return diagnose(build_case([Input("bench.txt", text)])).values

    assert "speedup" not in values(1, 150)
    assert "break_even_accept_len" not in values(1, 150)
    assert values(16, 1350)["speedup"] == 1.5
