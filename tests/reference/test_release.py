"""What changes between the releases that the engine behaves like."""

import pytest

from specdebug.reference.release import DEFAULT, RELEASES


def test_the_log_accept_rate_counts_the_bonus_up_to_0_5_10_and_not_after() -> None:
    assert RELEASES["0.5.10.post1"].log_accept_rate(1.6, 2) == pytest.approx(0.8)
    assert RELEASES["0.5.11"].log_accept_rate(1.6, 2) == pytest.approx(0.6)


def test_draft_positions_skip_one_up_to_0_5_11() -> None:
    offsets = {name: release.draft_position_offset for name, release in RELEASES.items()}
    assert offsets == {"0.5.9": 1, "0.5.10": 1, "0.5.10.post1": 1, "0.5.11": 1, "0.5.12": 0}


def test_the_default_is_a_known_release() -> None:
    assert DEFAULT in RELEASES
