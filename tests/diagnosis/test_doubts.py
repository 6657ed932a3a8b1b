"""A noted release beside a log of another one: both are named and none is chosen."""

from __future__ import annotations

import json

import pytest

from specdebug.diagnosis.case import Case, Input, build_case
from specdebug.diagnosis.checks.counting import accept_rate_not_comparable
from specdebug.diagnosis.doubts import doubts

LINE = (
    "[2026-01-01 10:00:{n:02} TP0] Decode batch, #running-req: 1, #token: 22, token usage: 0.00, "
    "accept len: {length:.2f}, accept rate: {rate:.2f}, cuda graph: True, "
    "gen throughput (token/s): 90.00, #queue-req: 0\n"
)
LENGTHS = (2.62, 2.85, 2.70, 2.93, 2.55)


def noted(release: str, log: str) -> Case:
    files = [("notes.json", json.dumps({"engine_version": release})), ("server.log", log)]
    return build_case([Input(name, text.encode()) for name, text in files])


def lines(strict: bool) -> str:
    rates = [(n - 1) / 3 if strict else n / 4 for n in LENGTHS]
    pairs = zip(LENGTHS, rates, strict=True)
    return "".join(LINE.format(n=n, length=a, rate=b) for n, (a, b) in enumerate(pairs))


@pytest.mark.parametrize(("release", "strict"), [("0.5.13", False), ("0.5.9", True)])
def test_rates_that_the_noted_release_cannot_print_are_named(release: str, strict: bool) -> None:
    case = noted(release, lines(strict))
    found = accept_rate_not_comparable(case)
    assert found is not None
    assert found.confidence == "likely"
    assert f"Release {release} is noted" in found.statement
    assert "window of 4" in found.statement
    assert {e.source for e in found.evidence} == {"notes.json", "server.log"}
    assert f"release {release}, but the accept rates" in case.inputs[0].summary


@pytest.mark.parametrize(("release", "strict"), [("0.5.13", True), ("0.5.9", False)])
def test_rates_of_the_noted_release_are_in_order(release: str, strict: bool) -> None:
    case = noted(release, lines(strict))
    assert doubts(case) == ()
    assert accept_rate_not_comparable(case) is None


def test_two_mangled_lines_deny_nothing() -> None:
    assert doubts(noted("0.5.13", "".join(lines(False).splitlines(True)[:2]))) == ()


def test_a_log_that_names_another_release_is_said_beside_the_note() -> None:
    case = noted("0.5.13", "sglang==0.5.9\n" + lines(True).replace("accept rate", "other rate"))
    (doubt,) = doubts(case)
    assert "names release 0.5.9 itself" in doubt.said
    assert accept_rate_not_comparable(case) is None


def test_a_line_of_later_releases_only_is_said_beside_the_note() -> None:
    log = "Non-overlap (synchronous) spec v2 is used for eagle/eagle3/standalone.\n" + lines(False)
    (doubt,) = doubts(noted("0.5.9", log))
    assert "0.5.13 on" in doubt.said
