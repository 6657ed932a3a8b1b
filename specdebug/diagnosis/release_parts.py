"""Logs that a person's headings ("0.5.10:") divide by release; where there are none, no parts."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace

from specdebug.diagnosis import log_rows
from specdebug.diagnosis.facts import Boot
from specdebug.sglang.headings import release_in_heading
from specdebug.sglang.log_line import engine_free
from specdebug.sglang.releases import Release

__all__ = ["by_release", "headed_releases"]

_LONGEST_HEADING = 200
_MOST_HEADINGS = 20


def by_release(text: str, name: str) -> list[Boot]:
    """The starts under each heading of a release, and above all; none without such headings.

    Decode lines under different releases are of different starts, whatever stands between them.
    Each part is read by itself, for the form of its lines bounds the release as well.
    """
    lines = text.split("\n")
    heads = _headings(lines)
    if not heads:
        return []
    from specdebug.sglang import logs  # a check without a log starts sooner

    out: list[Boot] = []
    starts = [at for at, _ in heads]
    releases: list[Release | None] = [release for _, release in heads]
    if any(_DECODE in line for line in lines[: starts[0]]):
        starts, releases = [0, *starts], [None, *releases]
    first = starts[0]
    starts[0] = 0  # what stands above all decode lines belongs to their start
    for release, start, end in zip(releases, starts, [*starts[1:], len(lines)], strict=True):
        part = "\n".join([""] * start + lines[start:end])
        read = log_rows.boots(logs.read_log(io.StringIO(part), name), name)
        out += [_of_release(boot, release, max(start, first) + 1) for boot in read]
    return out


def headed_releases(text: str) -> set[Release]:
    """The releases that headings above decode lines name."""
    return {release for _, release in _headings(text.split("\n"))} if _DECODE in text else set()


_DECODE = "Decode batch"


def _headings(lines: list[str]) -> list[tuple[int, Release]]:
    """Index and release of each heading with decode lines below it, one for each change."""
    served = list(_served(lines))
    if len(served) > _MOST_HEADINGS:
        return []
    changed: list[tuple[int, Release]] = []
    for at, release in served:
        if not changed or changed[-1][1] != release:
            changed.append((at, release))
    return changed


def _served(lines: list[str]) -> Iterator[tuple[int, Release]]:
    head: tuple[int, Release] | None = None
    for at, line in enumerate(lines):
        if head is not None and _DECODE in line:
            yield head
            head = None
        elif len(line) < _LONGEST_HEADING and "0." in line and engine_free(line):
            release = release_in_heading(line)
            head = head if release is None else (at, release)


def _of_release(boot: Boot, release: Release | None, line: int) -> Boot:
    """The start with the release of its heading, unless its own lines are of another one."""
    if release is None or boot.release is not None:
        return boot
    low = Release.find(boot.release_from or "")
    high = Release.find(boot.release_until or "")
    boot = replace(boot, line=max(boot.line, line)) if boot.excerpt else boot
    if (low is not None and release < low) or (high is not None and release > high):
        return boot
    return replace(boot, release=str(release))
