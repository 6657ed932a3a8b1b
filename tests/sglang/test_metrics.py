"""Prometheus text of both engines."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.metrics import read_metrics

DATA = Path(__file__).parents[1] / "data" / "sglang"


def test_a_real_scrape_gives_gauges_without_engine_prefix() -> None:
    metrics = read_metrics((DATA / "metrics.txt").read_bytes())
    assert metrics.unknown_lines == 0
    assert metrics.get("spec_accept_length") == 1.7
    assert metrics.get("sglang:spec_accept_rate") == 0.85
    assert metrics.get("cuda_graph_passes", mode="decode_none") == 208.0
    assert metrics.get("cuda_graph_passes", mode="no such") is None
    assert not any(sample.name.endswith("_bucket") for sample in metrics.samples)


def test_values_are_keyed_by_a_label_and_added_up() -> None:
    metrics = read_metrics(
        'vllm:n_total{position="0",engine="0"} 5\nvllm:n_total{position="0",engine="1"} 2\n'
        'vllm:n_total{position="1"} 3\n'
    )
    assert metrics.by_label("n", "position") == {"0": 7.0, "1": 3.0}


def test_labels_may_hold_braces_quotes_and_commas() -> None:
    metrics = read_metrics('m{path="a,b\\"}{",n="1"} +Inf 1700000000000\n# HELP m x\nno sample\n')
    (sample,) = metrics.samples
    assert sample.labels == {"path": 'a,b"}{', "n": "1"}
    assert (sample.value, sample.line) == (float("inf"), 1)
    assert metrics.unknown_lines == 1


@given(st.binary(max_size=600))
def test_any_bytes_are_samples_on_lines_that_they_have_or_unknown_lines(data: bytes) -> None:
    found = read_metrics(data)
    lines = len(data.splitlines()) + data.count(b"\r") + 1
    assert all(1 <= sample.line <= lines for sample in found.samples)
    assert len(found.samples) + found.unknown_lines <= lines
