"""vLLM's figures in SGLang's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.flags import parse_command
from specdebug.sglang.metrics import read_metrics
from specdebug.sglang.pasted import as_text
from specdebug.sglang.vllm import as_sglang_flags, conditional, counters, read_vllm_log

NEW = (
    "(APIServer pid=1) INFO 12-04 20:35:53 [metrics.py:100] SpecDecoding metrics: Mean acceptance "
    "length: 1.80, Accepted throughput: 40.00 tokens/s, Drafted throughput: 100.00 tokens/s, "
    "Accepted: 400 tokens, Drafted: 1000 tokens, Per-position acceptance rate: 0.600, 0.200, "
    "Avg Draft acceptance rate: 40.0%"
)
OLD = (
    "INFO 06-04 20:35:53 [metrics.py:75] SpecDecoding metrics: Draft acceptance rate: 40.0%, "
    "Mean acceptance length: 1.80, Accepted: 400 tokens, Drafted: 1000 tokens, "
    "Per-position acceptance rate: 0.600, 0.200"
)


@pytest.mark.parametrize("line", [NEW, OLD])
def test_both_field_orders_are_read(line: str) -> None:
    (found,) = read_vllm_log(line).spec
    assert (found.accept_len, found.accept_rate) == (1.8, 0.4)
    assert (found.accepted, found.drafted) == (400, 1000)
    assert found.per_position == (0.6, 0.2)
    assert found.accepted_tok_s == (40.0 if line is NEW else None)


def test_throughput_and_version_are_read() -> None:
    text = (
        "INFO Initializing a V1 LLM engine (v0.11.0) with config: model='m', speculative_config=x\n"
        "INFO Engine 000: Avg prompt throughput: 5.3 tokens/s, Avg generation throughput: 92.1 "
        "tokens/s, Running: 2 reqs, Waiting: 1 reqs, GPU KV cache usage: 0.1%\n"
    )
    log = read_vllm_log(text)
    assert (log.version, log.spec) == ("0.11.0", ())
    (line,) = log.throughput
    assert (line.line, line.generation_tok_s, line.running, line.waiting) == (2, 92.1, 2, 1)
    assert log.config_text is not None


def test_a_line_without_a_length_is_left_out() -> None:
    assert read_vllm_log("SpecDecoding metrics: nothing yet").spec == ()


def test_unconditional_rates_become_conditional_ones() -> None:
    assert conditional((0.6, 0.3, 0.0, 0.0)) == pytest.approx((0.6, 0.5, 0.0))
    assert conditional(()) == ()


def test_counters_of_a_scrape_give_length_and_positions() -> None:
    text = (
        'vllm:spec_decode_num_drafts_total{engine="0"} 500\n'
        'vllm:spec_decode_num_draft_tokens_total{engine="0"} 1000\n'
        'vllm:spec_decode_num_accepted_tokens_total{engine="0"} 400\n'
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="1"} 100\n'
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 300\n'
    )
    found = counters(read_metrics(text))
    assert found is not None
    assert (found.accept_len, found.per_position) == (1.8, (300.0, 100.0))
    assert counters(read_metrics("sglang:x 1\n")) is None


def test_its_flags_become_a_chain_with_one_more_position() -> None:
    (command,) = parse_command(
        "vllm serve org/m -tp 2 --max-num-seqs 32 --speculative-config "
        '\'{"method": "eagle3", "model": "org/d", "num_speculative_tokens": 3}\''
    )
    assert as_sglang_flags(command) == {
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 4,
        "speculative_algorithm": "EAGLE3",
        "speculative_draft_model_path": "org/d",
        "model_path": "org/m",
        "max_running_requests": 32,
        "tp_size": 2,
    }
    (plain,) = parse_command("vllm serve org/m")
    assert as_sglang_flags(plain) == {"model_path": "org/m"}


@given(st.text(max_size=300))
def test_any_log_is_read_to_lines_that_it_has(text: str) -> None:
    whole = "SpecDecoding metrics: Mean acceptance length: 1" + text + "\n" + NEW
    log, lines = read_vllm_log(whole), as_text(whole).split("\n")
    assert log.total_lines == len(lines)
    assert all(row.text.strip() in lines[row.line - 1] for row in log.spec)
    assert (log.spec[-1].line, log.spec[-1].accept_len) == (log.total_lines, 1.8)
