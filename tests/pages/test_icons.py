"""Badges: a word with its drawing, escaped, and never colour alone."""

from __future__ import annotations

from experiments.templatetags.icons import badge


def test_a_badge_says_its_word_beside_its_drawing() -> None:
    assert badge("high") == badge("high", "")
    assert "</svg>high</span>" in badge("high")
    assert '<span class="badge set-aside">' in badge("set-aside", "set aside")
    assert "set aside</span>" in badge("set-aside", "set aside")


def test_a_badge_of_what_nobody_knows_is_its_word_alone_and_safe() -> None:
    assert badge('"><b>', "<i>") == '<span class="badge &quot;&gt;&lt;b&gt;">&lt;i&gt;</span>'
    assert badge(None) == '<span class="badge None">None</span>'
