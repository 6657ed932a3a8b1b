"""Lines that stand above figures and name their run or their release; it reads no figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specdebug.sglang.patterns import regex
from specdebug.sglang.releases import Release
from specdebug.sglang.run_names import Side, bare_side, is_baseline, side_of, told_by_label

_DECORATION = " \t#*_`>-=~:\uff1a"
_SHORT_WORDS = 8
_SHORT = 80
_LONGEST = 400
_FIGURE = regex(
    r"(?i)^[\w .-]{1,40}:\s*[\d.,]+\s*\S{0,3}$|\d\s*(?:tok\w*|t)\s*/\s*s|\d\s*tps\b"
    r"|throughput[^\d\n]{0,20}\s[\d.,]+|\|"
)
_SENTENCE_END = (".", "!", "?", ";", ",", "。", "？", "！")


def heading_text(line: str) -> str | None:
    """The words of a line that can be a heading, None for a sentence, a figure or a long line.

    A heading is short or ends in a colon, and says no speed.
    """
    plain = line.strip()
    text = plain.strip(_DECORATION)
    if not text or len(plain) > _LONGEST or _FIGURE.search(plain):
        return None
    if plain.rstrip("*_` ").endswith((":", "\uff1a")):
        return text
    if plain.endswith(_SENTENCE_END) or len(text) > _SHORT or len(text.split()) > _SHORT_WORDS:
        return None
    return text


def names_a_run(line: str) -> bool:
    """Whether a line is a heading of a run with or without speculation."""
    text = heading_text(line)
    return text is not None and side_of(text) is not None


_REACH = 8  # lines looked at above a table, of which two may be other headings


def heading_above(lines: Sequence[str], at: int) -> str | None:
    """The heading above lines[at] that names its run ("without" too), None where none does.

    Blank lines, rules and a client's own title ("Benchmarking summary:") may stand between.
    """
    others = 0
    for index in range(at - 1, max(-1, at - 1 - _REACH), -1):
        if not lines[index].strip(_DECORATION + "+|\u2500\u2501\u2550"):
            continue
        text = heading_text(lines[index])
        if text is None or others == 2:
            return None
        if side_of(text) is not None or bare_side(text) is not None:
            return text
        others += 1
    return None


def load_of(fields: dict[str, Any]) -> str:
    """What tells the rows of a table apart: the row's name, else its load."""
    if fields.get("label"):
        return str(fields["label"])
    if "batch_size" in fields:
        return f"batch {fields['batch_size']}"
    return f"concurrency {fields['max_concurrency']}" if "max_concurrency" in fields else ""


_KEPT_LABEL = 77


def titled(fields: dict[str, Any], heading: str, side: Side) -> dict[str, Any]:
    """The fields of a run with what the heading above it says: its side and draft arguments."""
    label = load_of(fields)
    name = heading if len(heading) <= _KEPT_LABEL else heading[:_KEPT_LABEL].rstrip() + "..."
    told = told_by_label(heading)
    if side == "drafting" or fields.get("accept_len", 1.0) <= 1.0:
        told["is_baseline"] = side == "plain"
    # A "baseline" that accepts drafts is the old draft: what it is called is kept, and no more.
    return {**told, **fields, "label": f"{name}: {label}" if label else name}


def under_headings(tables: list[tuple[str | None, list[dict[str, Any]]]]) -> None:
    """Name the runs of tables, each given with the heading above it, in place.

    A heading is about a whole table: where rows name sides themselves, or some have an accept
    length and some none, it names no run. Rows with names of their own ("mt-bench") are taken for
    one side's only where another table stands under a heading of the other side; so is "without".
    """
    known = {side_of(heading) for heading, _ in tables if heading} - {None}
    sides = [side_of(h) or (bare_side(h) if known else None) if h else None for h, _ in tables]
    for (heading, rows), side in zip(tables, sides, strict=True):
        labels = [str(row.get("label") or "") for row in rows]
        named = any(is_baseline(t) or side_of(t) or bare_side(t) for t in labels)
        uneven = len({"accept_len" in row for row in rows}) > 1
        told = any("is_baseline" in row or "undecided" in row for row in rows)
        if heading is None or side is None or named or uneven or told:
            continue
        if any(labels) and not {"plain", "drafting"} <= set(sides):
            continue
        rows[:] = [titled(row, heading, side) for row in rows]


# Other software has releases as well, and names with figures that look like them.
_OTHERS = regex(
    r"(?i)vllm|torch|cuda|driver|flashinfer|transformers|nccl|triton|python|kernel|xgrammar|docker"
    r"|trt|tensorrt|linux|ubuntu|accept|steps?\b"
)
_ANOTHER = regex(r"0\.\d{1,2}\.\d{1,3}")
_OLDEST, _NEWEST = Release.parse("0.4.0"), Release.parse("0.6.0")


def release_in_heading(line: str) -> Release | None:
    """The one release that a heading names ("0.5.10:", "## sglang v0.5.11"), None for no such."""
    text = heading_text(line)
    if text is None or _OTHERS.search(text) or len(set(_ANOTHER.findall(text))) != 1:
        return None
    found = Release.find(text)
    return found if found is not None and _OLDEST <= found < _NEWEST else None
