"""The named figures and what they are called after: who counted them, and from how many drafts."""

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
