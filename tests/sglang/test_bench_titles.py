"""Titles of columns, in English and Chinese: what they fill, and which are not understood."""

from __future__ import annotations

import pytest

from specdebug.sglang.bench_titles import field_of, is_derived, is_known, run_words
from specdebug.sglang.benches import read_benches


@pytest.mark.parametrize(
    ("title", "field"),
    [
        *(
            ("输出吞吐 (tok/s)", "output_tok_s"),
            ("吞吐量", "output_tok_s"),
            ("生成速度", "output_tok_s"),
        ),
        *(("总吞吐 (tok/s)", "total_tok_s"), ("请求吞吐 (req/s)", "request_s")),
        *(("接受长度", "accept_len"), ("平均接受长度", "accept_len"), ("接受率", "accept_rate")),
        *(("并发", "max_concurrency"), ("并发数", "max_concurrency"), ("批大小", "batch_size")),
        *(
            ("配置", "label"),
            ("草稿步数", "num_steps"),
            ("草稿 token 数", "requested_draft_tokens"),
        ),
        *(("首 token 延迟 (ms)", "mean_ttft_ms"), ("每 token 延迟 (ms)", "mean_tpot_ms")),
        *(("每步耗时 (ms)", "step_ms"), ("输入吞吐 (tok/s)", None), ("加速比", None)),
        *(("Speedup", None), ("throughput change (%)", None), ("Accepted throughput", None)),
        *(("Average time per output token (s)", "mean_tpot_ms"), ("TPS draft", "output_tok_s")),
        ("Number of concurrency", "max_concurrency"),
    ],
)
def test_a_title_fills_one_field(title: str, field: str | None) -> None:
    assert field_of(title) == field
    assert is_known(title)


def test_a_chinese_table_is_read_whole() -> None:
    plain, spec = read_benches(
        "| 配置 | 并发 | 输出吞吐 (tok/s) | 接受长度 | 接受率 |\n|---|---|---|---|---|\n"
        "| 不开投机 | 1 | 92.1 | - | - |\n| EAGLE3 steps=3 topk=1 | 1 | 118.0 | 1.90 | 47% |\n"
    ).runs
    assert (plain.is_baseline, plain.output_tok_s, plain.max_concurrency) == (True, 92.1, 1)
    assert (spec.is_baseline, spec.accept_len, spec.accept_rate, spec.draft_tokens) == (
        *(False, 1.9, 0.47),
        4,
    )


def test_a_column_of_figures_that_nobody_understands_is_named() -> None:
    header = "| run | tok/s | wobble | note | p99 latency |\n|---|---|---|---|---|\n"
    text = header + "| a | 90 | 3 | x | 8 |\n"
    assert read_benches(text).remarks == ("column 'wobble' is not understood",)
    assert read_benches(text.replace("wobble", "TTFT")).remarks == ()
    assert read_benches(text.replace("| 3 |", "| red |")).remarks == ()  # words, no figure


def test_a_gain_is_no_speed() -> None:
    (run,) = read_benches(
        "| run | speedup | accept length |\n|---|---|---|\n| a | 1.3x | 1.9 |\n"
    ).runs
    assert (run.output_tok_s, run.accept_len) == (None, 1.9)


def test_what_of_a_title_names_a_run() -> None:
    assert run_words("output tok/s without MTP") == {"without", "mtp"}
    assert run_words("EAGLE3 accept length") == {"eagle3"}
    assert run_words("Output throughput (tok/s)") == frozenset()
    assert run_words("tok/s on") == {"on"}
    assert is_derived("tok/s per GPU")
    assert not is_derived("tok/s with MTP")
