"""Decode lines that a person's headings divide ("0.5.10:", "with EAGLE-3:", "plain.log:"), by
release, by run or by file; where there are none, no parts."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from specdebug.diagnosis import log_rows
from specdebug.diagnosis.arguments import NUM_STEPS, TOPK
from specdebug.diagnosis.facts import Boot, Fact
from specdebug.sglang.headings import heading_text, release_in_heading
from specdebug.sglang.log_line import DECODE, engine_free
from specdebug.sglang.patterns import regex
from specdebug.sglang.releases import Release
from specdebug.sglang.run_names import side_of, told_by_label

__all__ = ["by_heading", "headed_releases"]

_LONGEST_HEADING = 200
_MOST_HEADINGS = 20
_FILE = regex(r"(?i)(?:see |file |from )?[\w./-]{1,80}\.(?:log|txt|out)$")


@dataclass(frozen=True, slots=True)
class _Heading:
    """What tells a part from the next, its release, its run or its file; at: index of its line."""

    at: int
    names: Release | str

    @property
    def release(self) -> Release | None:
        return self.names if isinstance(self.names, Release) else None


def by_heading(text: str, name: str) -> list[Boot]:
    """The starts under each heading, and above all; none without such headings.

    Decode lines under different releases, runs or files are of different starts, whatever stands
    between them. Each part is read by itself, for the form of its lines bounds the release as well.
    """
    heads = _headings(text) or _turns(text)
    if not heads:
        return []
    lines = text.split("\n")
    from specdebug.sglang import logs  # a check without a log starts sooner

    out: list[Boot] = []
    if any(DECODE in line for line in lines[: heads[0].at]):
        heads = [_Heading(0, ""), *heads]
    first = heads[0].at
    # What stands above all decode lines belongs to the first part.
    bounds = [0, *(head.at for head in heads[1:]), len(lines)]
    for head, (start, end) in zip(heads, pairwise(bounds), strict=True):
        part = "\n".join([""] * start + lines[start:end])
        read = log_rows.boots(logs.read_log(io.StringIO(part), name), name)
        words = (heading_text(lines[head.at]) or "") if head.names else ""
        for boot in read:
            if boot.excerpt:
                boot = replace(
                    boot,
                    line=max(boot.line, start + 1, first + 1),
                    heading=words,
                    # Nothing else in an excerpt tells what was asked for.
                    effective={**_facts(words, name, head.at), **boot.effective},
                )
            out.append(_of_release(boot, head.release))
    return out


def _facts(heading: str, name: str, at: int) -> dict[str, Fact]:
    return {key: Fact(value, name, at + 1, heading) for key, value in _asked(heading).items()}


def headed_releases(text: str) -> set[Release]:
    """The releases that headings above decode lines name."""
    return {head.release for head in _headings(text) if head.release is not None}


_START = ("erver_args=", "Load weight", "ready to roll")


def _is_whole(text: str) -> bool:
    """Whether a log says itself where a start begins and what its arguments are."""
    return any(sign in text for sign in _START)


def _headings(text: str) -> list[_Heading]:
    """Each heading with decode lines below it, one for each change; none where nothing changes,
    unless it tells the release. In a whole log only releases count."""
    if DECODE not in text:
        return []
    served = list(_served(text.split("\n")))
    if _is_whole(text):
        served = [head for head in served if head.release is not None]
    if len(served) > _MOST_HEADINGS:
        return []
    changed: list[_Heading] = []
    for head in served:
        if not changed or changed[-1].names != head.names:
            changed.append(head)
    alone = len(changed) == 1 and changed[0].release is None
    return [] if alone else changed


_SHORTEST_TURN = 2
_MOST_TURNS = 6


def _turns(text: str) -> list[_Heading]:
    """Where decode lines with and without an accept length meet, in an excerpt without headings.

    A server prints one in each line or in none. Single lines tell nothing: they may be cut.
    """
    turns: list[_Heading] = []
    counts: list[int] = []
    drafting: bool | None = None
    if DECODE not in text or _is_whole(text):
        return []
    for at, line in enumerate(text.split("\n")):
        if DECODE not in line or "gen throughput" not in line:
            continue
        now = "accept len" in line
        if now is not drafting:
            drafting = now
            turns.append(_Heading(at, ""))
            counts.append(0)
        counts[-1] += 1
    several = 2 <= len(turns) <= _MOST_TURNS and min(counts) >= _SHORTEST_TURN
    return turns if several else []


def _served(lines: list[str]) -> Iterator[_Heading]:
    head: _Heading | None = None
    for at, line in enumerate(lines):
        if head is not None and DECODE in line:
            yield head
            head = None
        elif len(line) < _LONGEST_HEADING and engine_free(line):
            names = _named(line)
            head = head if names is None else _Heading(at, names)


def _named(line: str) -> Release | str | None:
    """What a heading tells its lines apart by; a release first, for it says most."""
    release = release_in_heading(line) if "0." in line else None
    if release is not None:
        return release
    text = heading_text(line)
    if text is None:
        return None
    if _FILE.match(text):
        return text
    side, asked = side_of(text), _asked(text)
    return f"{side or ''} {asked}".strip() if side or asked else None


_ASKED = {"num_steps": NUM_STEPS, "topk": TOPK}


def _asked(heading: str) -> dict[str, int]:
    """The draft arguments that a heading names, by the engine's own names."""
    told = told_by_label(heading)
    return {key: told[field] for field, key in _ASKED.items() if field in told}


def _of_release(boot: Boot, release: Release | None) -> Boot:
    """The start with the release of its heading, unless its own lines are of another one."""
    if release is None or boot.release is not None:
        return boot
    low = Release.find(boot.release_from or "")
    high = Release.find(boot.release_until or "")
    if (low is not None and release < low) or (high is not None and release > high):
        return boot
    return replace(boot, release=str(release))
