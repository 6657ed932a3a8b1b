"""SGLang release numbers, parsed, ordered and placed among those read; not a changelog."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, total_ordering

from specdebug.sglang.patterns import regex

_PATTERN = regex(
    r"(?<![\d.])v?(\d{1,3})\.(\d{1,3})\.(\d{1,3})"
    r"(?:[.\-_]?(rc|a|b|dev|post)[.\-_]?(\d{1,12}))?(?:\.dev(\d{1,12}))?(?!\.?\d)",
    re.IGNORECASE,
)
_STAGES = {"dev": -4, "a": -3, "b": -2, "rc": -1, "": 0, "post": 1}


@total_ordering
@dataclass(frozen=True)
class Release:
    """One release of the engine, for example 0.5.10.post1.

    `key` is what orders releases: (major, minor, patch, stage, number), where stage is 0 for a
    final release, 1 for a post release and negative for what comes before a final one.
    """

    key: tuple[int, int, int, int, int]

    @classmethod
    def parse(cls, text: str) -> Release:
        """Read a release out of `text` ("0.5.9", "v0.5.10.post1", "lmsysorg/sglang:v0.5.9-cu128").

        Raises ValueError when no release number is in it.
        """
        found = cls.find(text)
        if found is None:
            raise ValueError(
                f"no SGLang release number in {text[:80]!r}; write it like 0.5.10.post1"
            )
        return found

    @classmethod
    def find(cls, text: str) -> Release | None:
        """The first release number in `text`, or None."""
        match = _PATTERN.search(text)
        if match is None:
            return None
        major, minor, patch, stage, number, dev = match.groups()
        if dev is not None and stage is None:
            stage, number = "dev", dev
        return cls(
            (int(major), int(minor), int(patch), _STAGES[(stage or "").lower()], int(number or 0))
        )

    @cached_property
    def known(self) -> bool:
        """Whether the rules of exactly this release were read."""
        return self in _KNOWN_SET

    def __lt__(self, other: Release) -> bool:
        return self.key < other.key

    def __str__(self) -> str:
        major, minor, patch, stage, number = self.key
        base = f"{major}.{minor}.{patch}"
        suffix = {-4: f".dev{number}", -3: f"a{number}", -2: f"b{number}", -1: f"rc{number}"}
        suffix |= {0: "", 1: f".post{number}"}
        return base + suffix[stage]


KNOWN: tuple[Release, ...] = tuple(
    Release.parse(text)
    for text in [
        "0.4.3.post2",
        "0.4.4.post1",
        "0.4.5",
        "0.4.6",
        "0.4.7",
        "0.4.8",
        "0.4.9",
        "0.4.10",
        "0.5.0rc0",
        "0.5.1",
        "0.5.2",
        "0.5.3",
        "0.5.4",
        "0.5.4.post3",
        "0.5.5",
        "0.5.6",
        "0.5.6.post2",
        "0.5.7",
        "0.5.8",
        "0.5.8.post1",
        "0.5.9",
        "0.5.10",
        "0.5.10.post1",
        "0.5.11",
        "0.5.12",
        "0.5.13",
        "0.5.14",
        "0.5.15",
        "0.5.16",
        "0.5.17",
        "0.5.18",
        "0.5.19",
        "0.5.20",
        "0.5.21",
        "0.5.22",
        "0.5.23",
    ]
)
"""Releases whose source was read for the rules, oldest first."""

_KNOWN_SET = frozenset(KNOWN)


def nearest_known(release: Release) -> Release:
    """The newest release read that is not newer than `release`; the oldest one read if all are
    newer."""
    older = [known for known in KNOWN if known <= release]
    return older[-1] if older else KNOWN[0]


def known_between(first: Release | None, last: Release | None) -> tuple[Release, ...]:
    """The releases read from `first` to `last`, both included; None leaves that side open."""
    return tuple(
        known
        for known in KNOWN
        if (first is None or known >= first) and (last is None or known <= last)
    )
