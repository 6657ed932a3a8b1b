"""What was asked, told in words beside decode lines: taken where it is said and nowhere else."""

import pytest

from specdebug.diagnosis.case import Input, build_case

LINE = (
    "[2026-05-06 09:10:{:02d} TP0] Decode batch, #running-req: 1, #token: 900, token usage: 0.01, "
    "accept len: 1.60, accept rate: 0.80, cuda graph: True, gen throughput (token/s): 56.80, "
    "#queue-req: 0\n"
)
ADJUSTED = (
    "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when "
    "speculative_eagle_topk == 1"
)
LINES = "".join(LINE.format(n) for n in range(4))


def asked(words: str) -> dict[str, object]:
    case = build_case([Input("a", f"{words}\n\n{LINES}".encode())])
    assert len(case.boots) == 1
    return {k: f.value for launch in case.launches for k, f in launch.requested.items()}


ALL = {
    "speculative_num_steps": 1,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 16,
}


@pytest.mark.parametrize(
    "words",
    [
        "eagle3 with num_steps=1 topk=1 num_draft_tokens=16, is that normal?",
        "steps 1, topk 1, draft tokens 16",
        "1 step, topk 1 and 16 draft tokens",
        "speculative_num_steps=1, speculative_eagle_topk: 1, speculative_num_draft_tokens = 16",
        "speculative_num_steps 1\nspeculative_eagle_topk 1, speculative_num_draft_tokens 16.",
        "--speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 16",
    ],
)
def test_arguments_in_a_sentence_were_asked_for(words: str) -> None:
    assert asked(words) == ALL


@pytest.mark.parametrize(
    "words",
    [
        "Steps to reproduce: 1. start it 2. send 16 requests",
        "steps 1 and draft tokens 16 are what others use",  # no topk: no whole sentence on it
        "eagle3 steps=1 topk=1 draft=16: 56.8 tok/s",  # a run of its own
        "| steps 1 | topk 1 | draft tokens 16 |",
        "we set speculative_num_steps=3 and it was fine",
        ADJUSTED,
        "server_args=ServerArgs(speculative_num_steps=1, speculative_num_draft_tokens=2)",
    ],
)
def test_other_words_ask_for_nothing(words: str) -> None:
    assert asked(words) == {}


def test_the_engines_own_lines_ask_for_nothing() -> None:
    own = "[2026-05-06 09:10:00 TP0] steps 1, topk 1, draft tokens 16, speculative_num_steps 1"
    assert asked(own) == {}
