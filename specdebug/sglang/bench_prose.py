"""Benchmark figures told in words, by a client's report or a person; knows no table and no JSON."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from specdebug.sglang.bench_titles import Found, field_of, typed
from specdebug.sglang.headings import heading_text, names_a_run, titled
from specdebug.sglang.patterns import regex
from specdebug.sglang.run_names import (
    SPECULATIVE,
    Side,
    bare_side,
    is_baseline,
    side_of,
    told_by_label,
)
from specdebug.sglang.table_cells import by_pipe, unboxed, value_of

_REPORT: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (regex(pattern, re.IGNORECASE), field)
    for pattern, field in (
        (r"(?:events|chunks) per request\s*[:=]?\s+([\d.,]+)", "events_per_request"),
        (
            r"(?:output|generated|decode|generation)?\s*(?:tokens?|tok)\s*/\s*s(?:ec)?\s*[:=]?\s+([\d.,]+)",
            "output_tok_s",
        ),
        (r"(?:output|decode|generation)?\s*throughput[^\d\n]{0,20}\s([\d.,]+)", "output_tok_s"),
        (r"([\d.,]+)\s*(?:output )?(?:(?:tokens?|toks?|t)\s*/\s*s|tps\b)", "output_tok_s"),
        (r"(?<![a-z])acc(?:ept\w*)?[ _-]*len\w*[^\d\n]{0,12}([\d.]+(?:,\d+)?)", "accept_len"),
        (r"accept\w*[ _]*rate[^\d\n]{0,12}([\d.]+(?:,\d+)?)(?!\s*%)", "accept_rate"),
        (r"^\s*requests\s*[:=]?\s+([\d,]+)", "completed"),
        (r"concurrency\s*[:=]?\s+(\d+)", "max_concurrency"),
    )
)


# One of these stands in every line that a pattern of a report tells.
_OF_REPORT = ("tok", "throughput", "acc", "concurrency", "request", "t/s", "tps")
_UNIT = r"(?:output )?(?:(?:tokens?|toks?|t)\s*(?:/\s*s|per sec)|tps\b)"
_SPEED = regex(rf"(?i)([\d.,]*\d)\s*{_UNIT}")
# "90 -> 56.8 tok/s": the unit is that of both.
_ONE_UNIT = regex(rf"(?i)([\d.,]*\d)(\s*(?:->|\u2192|to|vs\.?)\s*[\d.,]*\d)(\s*{_UNIT})")
_PER_TOKEN = regex(r"(?i)([\d.,]*\d)\s*ms\s*(?:/|per )\s*tok(?:en)?\b")
_TURNED_ON = regex(
    r"(?i)\b(?:enabl|turn\w* on|switch\w* on|with|after|when|once|add)\w*\b"
    r".{0,40}?\b(?:spec|eagle|draft|mtp)"
)
_CLAUSE = regex(
    r"(?i)[.;](?=\s)|,\s|\b(?:while|whereas|versus|vs\.?|against|compared (?:to|with)|but|than|and"
    r"|instead of|from|to)\b|->|\u2192|(?<=/s)\s+(?=\S+\s*[=:]\s*\d)"
)


def _sentence(plain: str) -> list[dict[str, Any]] | None:
    """A line of prose that sets one speed against the baseline's: a row for each, or None.

    Acceptance and draft arguments in it belong to the run that is not the baseline. Where none is
    called so, and drafting was turned on, the first speed is the one before it.
    """
    plain = _PER_TOKEN.sub(_as_speed, _ONE_UNIT.sub(r"\1\3\2\3", plain))
    if len(_SPEED.findall(plain)) != 2:
        return None
    rows: list[dict[str, Any]] = []
    drafting: list[bool] = []
    rest: dict[str, Any] = {"extra": {}}
    for clause in _CLAUSE.split(plain):
        speed = _SPEED.search(clause)
        value = value_of(speed[1]) if speed else None
        if value is not None:
            plain_run = is_baseline(clause)
            rows.append({"output_tok_s": value, "label": "baseline" if plain_run else None})
            drafting.append(SPECULATIVE.search(clause) is not None)
        if value is None or not is_baseline(clause):
            told = told_by_label(clause)
            for field in ("num_steps", "topk", "requested_draft_tokens"):
                if field in told:
                    rest.setdefault(field, told[field])
        for pattern, field in _REPORT:
            if field in ("accept_len", "accept_rate") and (match := pattern.search(clause)):
                figure = value_of(match[1].rstrip(".,"))
                if figure is not None:
                    rest[field] = figure
    if len(rows) != 2:
        return None
    turned_on = _TURNED_ON.search(plain) and _CHANGE.search(plain) and not drafting[0]
    if turned_on and not any(row["label"] for row in rows):
        rows[0]["label"] = "baseline"
    if sum(row["label"] is not None for row in rows) != 1:
        return None
    rest["is_baseline"] = False
    return [{"extra": {}, **row} if row["label"] else {**row, **rest} for row in rows]


_CHANGE = regex(r"(?i)\bfrom\b.*\bto\b|->|\u2192")


def _as_speed(match: re.Match[str]) -> str:
    """ "11.1 ms/token" as tokens per second."""
    value = value_of(match[1])
    return f"{1000 / value:.6g} tok/s" if value else match[0]


_INPUT = regex(r"(?i)\b(?:input|prefill|prompt)\b[^\d\n]{0,30}(?:throughput|tok)")
_OUTPUT = regex(r"(?i)\b(?:output|decode|generat\w+)\b")


# A speed's own name is no name of a run.
_GENERIC = regex(
    r"(?i)\btok\w*\s*/|throughput|tok\w* per|^(?:output|generat\w+|decode|speed|result)s?\W*$"
)
# What stands between a run's name and its speed.
_SAYING = regex(
    r"(?i)(?:^|(?<=\s))(?:(?:we|i|it|that|this|you)\s+)?(?:(?:now|still|only|then|just)\s+)?"
    r"(?:gets?|got|sees?|saw|is|was|are|gives?|gave|runs?|reach(?:es|ed)?|has|had|do(?:es)?)"
    r"(?:\s+(?:about|around|only|at|just|now))*$"
)
_QUOTED = regex(r"^(?:>\s*)+|^[-*\u2022]\s+")


# A sentence within JSON is somebody's note on the figures, not the figures.
_MEMBER = regex(r"""[\[{\s]*["'][\w. -]{1,80}["']\s*:""")
_LONGEST_LABEL = 80
_ONE_AT_A_TIME = regex(r"(?i)one request at a time|concurrency of 1\b|single request")
_SAYS = regex(r"(?i)\d|one request|single request")  # no line without either says a figure


def _label(line: str) -> str | None:
    """What a line calls its run: the words before the speed, or those after it."""
    plain = _QUOTED.sub("", line)
    speed = _SPEED.search(plain)
    if speed is None:
        label = re.split(r"[:=]|\d", plain, maxsplit=1)[0]
    else:
        label = (
            plain[: speed.start()].rstrip(" (:=-\u2013\u2014\u2192~\u2248") or plain[speed.end() :]
        )
    # "Hi, this is 0.5.12. No draft we get" calls its run "No draft"; "it is" calls it nothing.
    label = re.split(r"(?<=[.!?;])\s+", label.strip())[-1]
    label = _SAYING.sub("", label).strip(" -*|,.;:") or "this run"
    if _GENERIC.search(label) or not 1 < len(label) <= _LONGEST_LABEL:
        first, colon, _ = label.partition(":")  # "plain: #questions: 80, Throughput"
        return first if colon and side_of(first) is not None else None
    return label


def client_report(lines: list[str], skip: Callable[[int], bool]) -> list[Found]:
    """Figures a client printed in words, blank lines between runs; engine lines are left out."""
    report = _Report(lines)
    for number, line in enumerate([*lines, ""], 1):
        plain = line.strip()
        if not plain or skip(number):
            report.end(number - 1)
        elif not _MEMBER.match(plain):
            report.take(number, _unboxed(plain))
    return report.out


def _unboxed(plain: str) -> str:
    """A row of a box with two cells, "| accept length   | 1.70 |", as "accept length: 1.70"."""
    cells = by_pipe(unboxed(plain)) if plain[0] in "|\u2502\u2503\u2551\u2506" else None
    if cells is None or len(cells) != 2 or field_of(cells[0]) not in _BOXED:
        return plain
    return f"{cells[0]}: {cells[1]}" if _BARE_FIGURE.fullmatch(cells[1]) else plain


_BOXED = ("output_tok_s", "accept_len", "accept_rate", "max_concurrency")
_BARE_FIGURE = regex(r"[\d.,]+")


class _Report:
    """A client's report while it is read: the run that has begun, under the heading above it."""

    def __init__(self, lines: list[str]) -> None:
        self.out: list[Found] = []
        self._lines = lines
        self._named_somewhere: bool | None = None
        self._run: dict[str, Any] = {}
        self._first = 0
        self._heading: tuple[str, Side] | None = None

    def end(self, last: int) -> None:
        """Keep the run that has begun, if it has a speed; a blank line ends no heading."""
        if "output_tok_s" in self._run:
            self.out.append((self._first, last, {"extra": {}, **self._named(self._run)}))
        self._run = {}

    def take(self, number: int, plain: str) -> None:
        """Take one line that is not blank."""
        low = plain.lower()
        figures = any(w in low for w in _OF_REPORT) and _SAYS.search(plain) and len(plain) <= 400
        found = _figures(plain) if figures else {}
        if not self._run and figures and (told := _sentence(plain)):
            self.out += [(number, number, fields) for fields in told]
            self._heading = None
            return
        if "output_tok_s" in found and "output_tok_s" in self._run:
            self.end(number - 1)
        if not found:
            self._look_for_heading(number, plain)
        elif not self._run:
            self._first = number
        if "output_tok_s" in found:
            self._run.setdefault("label", _label(plain))
        self._run |= found
        if figures and _ONE_AT_A_TIME.search(plain):
            self._run.setdefault("max_concurrency", 1)
            self._first = self._first or number

    def _look_for_heading(self, number: int, plain: str) -> None:
        """Lines under a heading are its run's, up to the next one or to words of another kind."""
        text = heading_text(plain)
        side = side_of(text) if text else None
        if text and bare_side(text) and self._drafts_are_headed():
            side = bare_side(text)  # "Without:" where another heading says what is left out
        if text and side:
            self.end(number - 1)
            self._heading = text, side
        elif text is None and len(plain.split()) > _FEW_WORDS:
            self._heading = None

    def _drafts_are_headed(self) -> bool:
        if self._named_somewhere is None:
            self._named_somewhere = any(map(names_a_run, self._lines))
        return self._named_somewhere

    def _named(self, run: dict[str, Any]) -> dict[str, Any]:
        own = run.get("label") or ""
        if self._heading is None or is_baseline(own) or SPECULATIVE.search(own):
            return run
        return titled(run, *self._heading)


_FEW_WORDS = 8  # what a client prints beside its figures is shorter than a sentence


def _figures(plain: str) -> dict[str, Any]:
    """What one line of a report tells."""
    found: dict[str, Any] = {}
    for pattern, field in _REPORT:
        if field not in found and (match := pattern.search(plain)):
            value = value_of(match[1].rstrip(".,"))
            if value is not None:
                found[field] = typed(field, value)
    if _INPUT.search(plain) and not _OUTPUT.search(plain):
        found.pop("output_tok_s", None)
    return found


_OF_POSITIONS = regex(r"(?i)\b(?:per|by|each)[ -]?(?:draft )?position\w*|\bposition\w* accept")
_POSITION = regex(
    r"(?i)^\W*(?:draft )?pos(?:ition)?\.?\s*#?(\d{1,2})\s*[:=|]\s*([\d.]+\d|\d)\s*%?\W*$"
)
_LISTED = regex(r"[:=]?\s*[\[(]?\s*((?:\d[\d.]*\s*%?\s*[,;/ ]\s*)+\d[\d.]*)\s*%?")
_DRAFTS = regex(r"(?i)([\d,]+) (?:drafts|verif\w+)\b")


def acceptance_by_position(lines: list[str]) -> list[Found]:
    """Acceptance by draft position in words: one list after its name, or a line for each position.

    `extra` holds per_position as written, `conditional` where the words or the figures say so (a
    share of all drafts cannot rise with the position), and `drafts` where a number of them is told.
    """
    for at, line in enumerate(lines):
        named = _OF_POSITIONS.search(line[:400])
        if named is None:
            continue
        listed = _LISTED.match(re.sub(r"^[^\d:=\[]*", "", line[named.end() : 400]))
        if listed is not None:
            values = [
                float(v.rstrip("."))
                for v in re.findall(r"\d[\d.]*", listed[1])
                if v.count(".") <= 1
            ]
            last = at + 1
        else:
            rows = [_POSITION.match(row) for row in lines[at + 1 : at + 33]]
            count = next((i for i, row in enumerate(rows) if row is None), len(rows))
            values = [float(row[2].rstrip(".")) for row in rows[:count] if row]
            last = at + 1 + count
        if len(values) < 2 or max(values) > 100:
            continue
        around = " ".join(lines[max(0, at - 2) : last + 2])[:2_000]
        drafts = _DRAFTS.search(around)
        extra: dict[str, Any] = {"per_position": values}
        if "conditional" in around.lower() or any(b > a for a, b in itertools.pairwise(values)):
            extra["conditional"] = "unconditional" not in around.lower()
        if drafts and drafts[1].strip(","):
            extra["drafts"] = int(drafts[1].replace(",", ""))
        return [(at + 1, last, {"extra": extra})]
    return []
