"""Release numbers in the forms people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdebug.sglang.releases import KNOWN, Release, known_between, nearest_known


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("0.5.10.post1", "0.5.10.post1"),
        ("v0.5.9", "0.5.9"),
        ("lmsysorg/sglang:v0.5.9-cu128", "0.5.9"),
        ("sglang==0.5.0rc0", "0.5.0rc0"),
        ("0.4.3.post2+cu124", "0.4.3.post2"),
        ("0.5.11.dev42", "0.5.11.dev42"),
    ],
)
def test_a_release_is_found_in_what_people_write(text: str, plain: str) -> None:
    assert str(Release.parse(text)) == plain


@pytest.mark.parametrize("text", ["", "latest", "main", "1.2", "127.0.0.1", "0.5.9.1"])
def test_a_text_without_a_release_says_how_to_write_one(text: str) -> None:
    assert Release.find(text) is None
    with pytest.raises(ValueError, match=r"0\.5\.10\.post1"):
        Release.parse(text)


def test_order_puts_candidates_before_and_posts_after_a_release() -> None:
    texts = ["0.5.9", "0.5.10.dev1", "0.5.10rc1", "0.5.10", "0.5.10.post1", "0.5.11", "0.6.0"]
    releases = [Release.parse(text) for text in texts]
    assert releases == sorted(releases)
    assert Release.parse("0.5.10") < Release.parse("0.5.10.post1") < Release.parse("0.5.11")
    assert Release.parse("0.5.9") < Release.parse("0.5.10")


def test_known_releases_are_in_order_and_know_it() -> None:
    assert list(KNOWN) == sorted(KNOWN)
    assert Release.parse("0.5.9").known
    assert not Release.parse("0.5.8.post9").known


def test_the_nearest_known_release_is_never_newer() -> None:
    assert nearest_known(Release.parse("0.5.8.post2")) == Release.parse("0.5.8.post1")
    assert nearest_known(Release.parse("9.0.0")) == KNOWN[-1]
    assert nearest_known(Release.parse("0.1.0")) == KNOWN[0]


def test_a_range_includes_both_ends_and_may_be_open() -> None:
    first, last = Release.parse("0.5.9"), Release.parse("0.5.10.post1")
    assert [str(r) for r in known_between(first, last)] == ["0.5.9", "0.5.10", "0.5.10.post1"]
    assert known_between(None, None) == KNOWN


@given(st.sampled_from(KNOWN))
def test_text_and_release_are_the_same_thing(release: Release) -> None:
    assert Release.parse(str(release)) == release
