"""Decode lines under headings of releases: other starts, never pooled; and what is no heading."""

from __future__ import annotations

from specdebug.diagnosis.case import Input, build_case
from specdebug.diagnosis.diagnose import diagnose
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.release_parts import by_release, headed_releases
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
    boots = by_release(f"0.5.10:\n{OLD}0.5.11:\n{NEW}", "x")
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
