import random

import pytest

from specdebug.measure.acceptance import conditional_from_histogram
from specdebug.measure.depths import AcceptanceByDepth, Profile

SHALLOW = Profile(1, (0.6,), 4000)
DEEP = Profile(8, (0.5, 0.65, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7), 3000)


def test_a_measured_depth_keeps_what_it_measured() -> None:
    found = AcceptanceByDepth([DEEP, SHALLOW]).at(1)
    assert found.value == pytest.approx(1.6)
    assert 1.56 < found.low < 1.6 < found.high < 1.64


def test_between_two_depths_the_range_spans_what_both_say() -> None:
    found = AcceptanceByDepth([SHALLOW, DEEP]).at(3)
    by_shallow = 1 + 0.6 + 0.6 * 0.65 + 0.6 * 0.65 * 0.7
    by_deep = 1 + 0.5 + 0.5 * 0.65 + 0.5 * 0.65 * 0.7
    assert by_deep < found.value < by_shallow
    assert found.low < by_deep
    assert found.high > by_shallow


def test_beyond_the_deepest_run_the_range_opens_up_to_certainty() -> None:
    curve = AcceptanceByDepth([SHALLOW, DEEP])
    inside, outside = curve.at(8), curve.at(15)
    assert outside.low <= inside.value <= outside.value <= outside.high
    assert outside.high - outside.low > 1.3 * (inside.high - inside.low)


def test_one_deep_run_widens_what_is_said_of_shallower_ones() -> None:
    alone = AcceptanceByDepth([DEEP]).at(2)
    both = AcceptanceByDepth([SHALLOW, DEEP]).at(8)
    assert (alone.high - alone.low) / alone.value > (both.high - both.low) / both.value


def test_the_length_that_a_run_reports_wins_over_its_chain() -> None:
    whole = 1 + 0.5 + 0.25
    cut = Profile(2, (0.5, 0.5), 1000, accept_len=1.70)
    assert AcceptanceByDepth([cut]).at(2).value == pytest.approx(1.70)
    assert AcceptanceByDepth([Profile(2, (0.5, 0.5), 1000)]).at(2).value == pytest.approx(whole)


def test_more_passes_narrow_the_range_and_no_count_assumes_one() -> None:
    few, many = (AcceptanceByDepth([Profile(1, (0.6,), n)]).at(1) for n in (100, 10000))
    assert few.high - few.low > 5 * (many.high - many.low)
    unknown = AcceptanceByDepth([Profile(1, (0.6,), 0)]).at(1)
    assert unknown.high - unknown.low == pytest.approx(2 * 0.03 * 1.6)


def test_no_profile_is_refused() -> None:
    with pytest.raises(ValueError, match="first draft position"):
        AcceptanceByDepth([Profile(3, ())])


def test_a_range_holds_the_accept_length_of_the_next_run() -> None:
    draw = random.Random(6)

    def run(passes: int) -> list[int]:
        counts = [0] * 4
        for _ in range(passes):
            k = 0
            while k < 3 and draw.random() < 0.6:
                k += 1
            counts[k] += 1
        return counts

    held = 0
    for _ in range(200):
        rates = conditional_from_histogram(run(400), 3)
        found = AcceptanceByDepth([Profile(3, rates, 400)]).at(3)
        held += found.low <= 1 + 0.6 + 0.36 + 0.216 <= found.high
    assert held >= 190


def test_an_accept_length_never_leaves_what_a_chain_can_give() -> None:
    for n in range(1, 20):
        found = AcceptanceByDepth([Profile(2, (0.99, 0.99), 20)]).at(n)
        assert 1 <= found.low <= found.value <= found.high <= n + 1
