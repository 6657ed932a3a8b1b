"""Decode lines under headings of releases: other starts, never pooled; and what is no heading."""

from __future__ import annotations

import pytest

from specdebug.diagnosis.case import Input, build_case
from specdebug.diagnosis.diagnose import diagnose
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.headed_parts import by_heading, headed_releases
from specdebug.sglang.releases import Release

LINE = (
    "[2026-04-{:02d} 10:00:0{} TP0] Decode batch, #running-req: 1, #token: 900, token usage: 0.00, "
    "accept len: {:.2f}, accept rate: {:.2f}, cuda graph: True, gen throughput (token/s): {:.2f}, "
    "#queue-req: 0"
)
LENGTHS = (2.13, 2.22, 2.26, 2.01, 1.84, 2.40)


def lines(day: int, strict: bool) -> str:
    rates = [(n - 1) / 3 if strict else n / 4 for n in LENGTHS]
    return "".join(
        LINE.format(day, at, n, r, 1000 * n / 18) + "\n"
        for at, (n, r) in enumerate(zip(LENGTHS, rates, strict=True))
    )


OLD, NEW = lines(2, strict=False), lines(20, strict=True)


def case_of(text: str) -> Case:
    return build_case([Input("pasted.txt", text.encode())])


def starts(text: str) -> list[tuple[int, str | None, int]]:
    return [(b.line, b.release, sum(map(len, b.stretches))) for b in case_of(text).boots]


def test_lines_under_different_releases_are_different_starts() -> None:
    text = f"Rate fell!\n\n0.5.10:\n{OLD}\n0.5.11:\n{NEW}"
    assert starts(text) == [(3, "0.5.10", 6), (11, "0.5.11", 6)]
    found = diagnose(case_of(text))
    assert "accept-rate-not-comparable" in {f.code for f in found.findings}
    assert found.values["effective_draft_tokens"] == 4


def test_numbers_of_lines_stay_those_of_the_paste() -> None:
    boots = by_heading(f"0.5.10:\n{OLD}0.5.11:\n{NEW}", "x")
    assert [b.stretches[0].lines[0] for b in boots] == [2, 9]


def test_lines_above_the_first_heading_are_of_no_known_release() -> None:
    assert starts(f"{OLD}\n0.5.11:\n{NEW}") == [(1, None, 6), (8, "0.5.11", 6)]


def test_one_heading_above_all_lines_names_their_release() -> None:
    assert starts(f"sglang 0.5.12:\n{NEW}") == [(1, "0.5.12", 6)]
    assert starts(f"0.5.12:\n{NEW}\n0.5.12 again:\n{NEW}") == [(1, "0.5.12", 12)]


def test_a_release_that_prints_no_such_lines_is_not_taken() -> None:
    # These lines end without a comma, as from 0.5.9 on.
    assert starts(f"0.5.4:\n{OLD}\n0.5.11:\n{NEW}") == [(1, None, 6), (9, "0.5.11", 6)]


def test_a_sentence_or_another_softwares_release_divides_nothing() -> None:
    for words in ("We upgraded to 0.5.11 in May.", "flashinfer 0.5.3:", "from 0.5.10 to 0.5.11:"):
        assert len(case_of(f"{OLD}\n{words}\n{NEW}").boots) == 1, words


def test_the_release_of_prose_is_not_that_of_logs_under_their_own() -> None:
    text = f"We left sglang 0.5.10 for sglang 0.5.11.\n\n0.5.10:\n{OLD}\n0.5.11:\n{NEW}"
    assert case_of(text).engine_version is None
    assert headed_releases(text) == {Release.parse("0.5.10"), Release.parse("0.5.11")}
    assert headed_releases("0.5.10:\n0.5.11:\n") == set()


PLAIN = "".join(
    f"[2026-04-02 09:00:0{n} TP0] Decode batch, #running-req: 1, #token: 900, token usage: 0.00, "
    "cuda graph: True, gen throughput (token/s): 90.00, #queue-req: 0\n"
    for n in range(6)
)


def parts(text: str) -> list[tuple[int, str, int]]:
    return [(b.line, b.heading, sum(map(len, b.stretches))) for b in case_of(text).boots]


def test_lines_under_the_names_of_two_runs_are_never_pooled() -> None:
    text = f"Same client.\n\nWithout speculation:\n{PLAIN}\nWith EAGLE-3:\n{OLD}"
    assert parts(text) == [(3, "Without speculation", 6), (11, "With EAGLE-3", 6)]
    found = diagnose(case_of(text))
    codes = {f.code: f for f in found.findings}
    assert "below-break-even" not in codes
    assert found.values["baseline_tok_s"] == 90
    assert found.values["step_ms"] == pytest.approx(18, rel=0.01)
    # Who wrote the headings told the starts apart.
    assert "several-boots" not in codes


def drafting(length: float, rate: float, tok_s: float) -> str:
    return "".join(
        f"[2026-04-02 10:00:0{n} TP0] Decode batch, #running-req: 1, #token: 900, token usage: "
        f"0.00, accept len: {length:.2f}, accept rate: {rate:.2f}, cuda graph: True, gen "
        f"throughput (token/s): {tok_s:.2f}, #queue-req: 0\n"
        for n in range(6)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("steps 1:", "steps 15:"),
        ("EAGLE-3, 1 step:", "EAGLE-3, 15 steps:"),
        ("--speculative-num-steps 1", "--speculative-num-steps 15"),
    ],
)
def test_lines_under_two_numbers_of_steps_are_two_runs(one: str, other: str) -> None:
    text = f"{one}\n{drafting(1.6, 0.8, 56.7)}\n{other}\n{drafting(1.92, 0.12, 47.2)}"
    notes = {"engine_version": "0.5.9", "baseline_tok_s": 90}
    case = build_case([Input("pasted.txt", text.encode())], notes=notes)
    found = diagnose(case)
    codes = {f.code for f in found.findings}
    assert {"speculation-cannot-win", "step-overhead-unexplained"} <= codes
    assert not {"several-boots", "argument-overridden"} & codes
    assert found.values["ms_per_draft_step"] == pytest.approx(0.89, abs=0.01)
    assert found.values["num_steps"] == 1


def test_a_command_is_not_held_against_what_a_heading_says() -> None:
    text = f"steps 1:\n{drafting(1.6, 0.8, 56.7)}\nsteps 15:\n{drafting(1.92, 0.12, 47.2)}"
    command = b"sglang serve --speculative-algorithm EAGLE3 --speculative-num-steps 3"
    case = build_case([Input("pasted.txt", text.encode()), Input("command.txt", command)])
    assert "argument-overridden" not in {f.code for f in diagnose(case).findings}


def test_lines_under_the_names_of_two_files_are_those_of_two_servers() -> None:
    assert parts(f"plain.log:\n{PLAIN}\nspec.log:\n{OLD}") == [
        (1, "plain.log", 6),
        (9, "spec.log", 6),
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"With EAGLE-3:\n{OLD}",
        f"spec.log:\n{OLD}\nspec.log:\n{OLD}",
        f"EAGLE-3 first:\n{OLD}\nWith EAGLE-3 again:\n{OLD}",
        f"{OLD}\nAnother hour, no change.\n{OLD}",
    ],
)
def test_headings_that_change_nothing_make_no_parts(text: str) -> None:
    assert len(parts(text)) == 1


def test_servers_with_and_without_speculation_are_told_apart_by_their_lines() -> None:
    assert [(line, n) for line, _, n in parts(PLAIN + OLD)] == [(1, 6), (7, 6)]
    found = diagnose(case_of(PLAIN + OLD))
    assert found.values["baseline_tok_s"] == 90
    assert "several-boots" in {f.code for f in found.findings}


def test_a_line_that_was_cut_is_no_other_server() -> None:
    cut = OLD.splitlines(keepends=True)
    cut[2] = cut[2].replace("accept len: 2.26, accept rate: 0.56, ", "")
    assert "accept len" not in cut[2]
    assert len(parts("".join(cut))) == 1


def test_a_whole_log_is_one_start_whatever_its_lines_carry() -> None:
    dump = "[2026-04-02 08:59:00] server_args=ServerArgs(model_path='m')\n"
    assert len(parts(dump + PLAIN + OLD)) == 1
