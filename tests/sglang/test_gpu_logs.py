"""Logs of the real server on a GPU, with CUDA graphs: the lines that a CPU never prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from specdebug.diagnosis.diagnose import diagnose
from specdebug.diagnosis.facts import Input
from specdebug.diagnosis.gather import build_case
from specdebug.measure.gpu_samples import GpuSamples, summarise
from specdebug.sglang.logs import read_log

pytestmark = pytest.mark.usefixtures("both_ways")

H200 = Path(__file__).parents[1] / "data" / "h200"


@pytest.mark.parametrize(
    ("name", "decode", "captures"), [("plain", 52, 1), ("steps1-draft16", 36, 2), ("steps3", 31, 3)]
)
def test_no_line_of_decoding_or_capturing_is_left_unread(
    name: str, decode: int, captures: int
) -> None:
    log = read_log(H200 / f"{name}.log")
    (boot,) = log.boots
    assert (log.unread_decode_lines, log.is_excerpt, log.problems) == (0, False, ())
    assert boot.decode_count == decode == (H200 / f"{name}.log").read_text().count("Decode batch")
    counts = boot.event_counts
    begun = counts["capture-begin"] + counts.get("capture-draft-begin", 0)
    ended = counts["capture-end"] + counts.get("capture-draft-end", 0)
    assert begun == ended == captures
    assert counts["ready"] == 1


def codes(*names: str, command: str = "") -> set[str]:
    given = [Input(name, (H200 / name).read_bytes()) for name in names]
    if command:
        given.append(Input("command.txt", command.encode()))
    return {finding.code for finding in diagnose(build_case(given)).faults}


def test_the_override_is_told_with_the_command_beside_the_log() -> None:
    command = (
        "python -m sglang.launch_server --model-path m --speculative-algorithm EAGLE3 "
        "--speculative-draft-model-path d --speculative-num-steps 1 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens {}"
    )
    assert "draft-tokens-overridden" in codes("steps1-draft16.log", command=command.format(16))
    assert "draft-tokens-overridden" not in codes("steps1-draft16.log", command=command.format(2))
    # Every graph was captured, one step having no draft decode of its own.
    assert "cuda-graph-off" not in codes("steps1-draft16.log") | codes("steps3.log")


def test_samples_of_a_real_gpu_say_what_it_did_between_two_moments() -> None:
    found = GpuSamples.unpacked((H200 / "gpu-samples.json.gz").read_bytes())
    (gpu,) = found.gpus
    assert (gpu.name, len(found.times)) == ("NVIDIA H200", 51)
    begin = found.times[0]
    (busy,) = summarise(found, [(begin + 42.5, begin + 47.5)])
    (idle,) = summarise(found, [(begin, begin + 5)])
    assert busy.util_mean is not None
    assert idle.util_mean is not None
    assert busy.util_mean > 20 > 1 > idle.util_mean
    assert (busy.memory_mb_max or 0) > 1000
    assert (busy.samples, busy.throttled_samples, busy.new_ecc, busy.lost) == (5, 0, 0, False)
