import io
from typing import Any

import pytest

from specdebug.diagnosis import log_rows
from specdebug.diagnosis.arguments import ReleaseKnowledge
from specdebug.diagnosis.decode import (
    NEW_RATE,
    OLD_RATE,
    counted_indices,
    rate_windows,
    summarise,
    together,
    window_reading,
)
from specdebug.sglang.logs import read_log
from specdebug.sglang.releases import Release

UNKNOWN = ReleaseKnowledge(None, None, None, None)


def exactly(text: str) -> ReleaseKnowledge:
    release = Release.parse(text)
    return ReleaseKnowledge(release, release, release, None)


def test_the_storys_line_means_two_tokens_a_step() -> None:
    assert rate_windows(1.60, 0.80) == {OLD_RATE: (2,)}


def test_one_line_can_fit_two_definitions() -> None:
    assert rate_windows(2.50, 0.50) == {OLD_RATE: (5,), NEW_RATE: (4,)}


def test_a_spread_of_lengths_decides_the_definition(make: Any) -> None:
    lengths = [2.2, 2.5, 2.8, 2.4, 2.6]
    for strict, formula in ((False, OLD_RATE), (True, NEW_RATE)):
        boot = make.boot(make.stretch(lengths, window=4, strict=strict))
        found = window_reading(boot, UNKNOWN)
        assert found is not None
        assert found.windows == (4,)
        assert list(found.by_formula) == [formula]


def test_the_release_limits_the_definitions(make: Any) -> None:
    boot = make.boot(make.stretch([2.5] * 5, window=5))
    old, new = (window_reading(boot, exactly(v)) for v in ("0.5.10", "0.5.11"))
    assert old is not None
    assert new is not None
    assert (old.windows, new.windows) == ((5,), (4,))


def test_a_dead_draft_on_newer_releases_tells_no_window(make: Any) -> None:
    boot = make.boot(make.stretch([1.0] * 8, window=4, strict=True))
    assert window_reading(boot, exactly("0.5.12")) is None


def test_one_mangled_line_among_many_decides_nothing(make: Any) -> None:
    stretch = make.stretch([2.0 + 0.03 * k for k in range(30)], window=4)
    stretch.accept_rate[7] = 0.99
    found = window_reading(make.boot(stretch), UNKNOWN)
    assert found is not None
    assert found.windows == (4,)


def test_lines_without_a_rate_tell_nothing(make: Any) -> None:
    assert window_reading(make.boot(make.stretch([2.0] * 5)), UNKNOWN) is None


def test_accept_length_is_weighted_by_running_requests(make: Any) -> None:
    stretch = make.stretch([2.0, 3.0])
    stretch.running[:] = [1.0, 3.0]
    assert summarise(make.boot(stretch), stretch).accept_len == pytest.approx(2.75)


def test_idle_lines_are_not_busy(make: Any) -> None:
    stretch = make.stretch([2.0] * 6)
    stretch.running[0] = 0.0
    found = summarise(make.boot(stretch), stretch)
    assert found.busy == 5
    assert 0 not in counted_indices(stretch)


def test_ranks_add_their_throughput_and_requests(make: Any) -> None:
    parts = [
        summarise(make.boot(s), s)
        for s in (make.stretch([2.0] * 5, running=2), make.stretch([3.0] * 5, running=2))
    ]
    whole = together(parts)
    assert whole.running == 4
    assert whole.accept_len == pytest.approx(2.5)
    assert whole.tok_s == pytest.approx(sum(p.tok_s or 0 for p in parts))


def test_a_long_log_is_thinned_and_its_drafts_still_counted(
    monkeypatch: pytest.MonkeyPatch, make: Any
) -> None:
    line = (
        "[2026-05-06 09:10:00 TP0] Decode batch, #running-req: 1, #token: 900, token usage: 0.01, "
        "accept len: 2.00, accept rate: 0.50, cuda graph: True, gen throughput (token/s): 100.00, "
        "#queue-req: 0\n"
    )
    monkeypatch.setattr(log_rows, "MOST_LINES", 10)
    (boot,) = log_rows.boots(read_log(io.StringIO(line * 40), "x"), "x")
    (stretch,) = boot.stretches
    assert (len(stretch), stretch.every) == (10, 4)
    assert summarise(boot, stretch).drafts == 40 * 40
