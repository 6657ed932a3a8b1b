"""A diagnosis as lines for a terminal; decides nothing."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import Any

from specdebug.diagnosis.diagnose import Diagnosis
from specdebug.diagnosis.findings import SEVERITIES, Evidence, Finding

__all__ = ["report"]

_LONG = 80
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COLOURS = {"critical": "1;31", "high": "31", "medium": "33", "info": "36"}


def report(found: Diagnosis, *, colour: bool = False, width: int | None = None) -> Iterator[str]:
    """Inputs, findings by severity, figures, and what is missing, wrapped to the terminal."""
    columns = min(width or shutil.get_terminal_size((100, 24)).columns, 110)
    for given in found.inputs:
        if given.unusable is not None:
            mark = _paint("cannot be used", "31", colour)
            yield f"{_clean(given.name)}: {mark}: {_clean(given.unusable)}"
        else:
            yield f"{_clean(given.name)}: {given.kind}, {_clean(given.summary)}".rstrip(", ")
    if found.inputs:
        yield ""
    if found.faults:
        yield _summary(found)
        yield ""
    quoted: set[Evidence] = set()
    for finding in found.findings:
        yield from _finding(finding, colour, columns, quoted)
    if not any(given.unusable is None for given in found.inputs):
        yield "Nothing was checked: no input could be used."
        yield ""
    elif not found.faults:
        tried = "" if not found.untried else f" ({len(found.untried)} checks lacked an input)"
        yield f"No fault found{tried}."
        yield ""
    figures = [f"{k} {_figure(v)}" for k, v in found.values.items() if k != "run" and _short(k, v)]
    if figures:
        of = f" of {found.values['run']}" if "run" in found.values else ""
        yield from textwrap.wrap(f"Figures{of}: " + ", ".join(figures), columns)
        yield ""
    if found.missing is not None:
        text = f"Most valuable next input: {found.missing.input} ({found.missing.why})."
        yield from textwrap.wrap(text, columns)


def _summary(found: Diagnosis) -> str:
    """How many findings of each severity there are, before anybody reads them."""
    counts = Counter(finding.severity for finding in found.findings)
    said = [f"{counts[severity]} {severity}" for severity in SEVERITIES if counts[severity]]
    many = "s" if len(found.faults) > 1 else ""
    return f"{len(found.faults)} fault{many} found: " + ", ".join(said) + "."


def _finding(finding: Finding, colour: bool, columns: int, quoted: set[Evidence]) -> Iterator[str]:
    """One finding; a long quotation that stands further up already is only named."""
    head = f"{finding.severity.upper()} {finding.code}"
    yield f"{_paint(head, _COLOURS[finding.severity], colour)} ({finding.confidence})"
    yield from _indent(finding.statement, columns)
    for evidence in finding.evidence[:4]:
        where = evidence.source if evidence.line is None else f"{evidence.source}:{evidence.line}"
        text = _clean(evidence.text)
        if evidence in quoted and len(text) > _LONG and evidence.line is not None:
            text = "(quoted above)"
        quoted.add(evidence)
        yield from _indent(f"{_clean(where)}: {text[:200]}", columns, "    | ")
    if finding.fix:
        yield from _indent("Fix: " + finding.fix, columns)
    if finding.settled_by:
        yield from _indent("Settled by: " + finding.settled_by, columns)
    yield ""


def _indent(text: str, columns: int, lead: str = "  ") -> list[str]:
    return textwrap.wrap(
        _clean(text),
        columns,
        initial_indent=lead,
        subsequent_indent=lead,
        break_on_hyphens=False,
        break_long_words=False,  # a path is there to be copied
    )


def _paint(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def _clean(text: str) -> str:
    """Control characters of an untrusted input never reach the terminal."""
    return _CONTROL.sub("?", text)


# What findings quote where it matters; --json has all of it.
_ASIDE = ("requested_", "captured_layers_", "target_", "draft_rope", "written_", "fixed_")


def _short(name: str, value: Any) -> bool:
    return (
        not name.startswith(_ASIDE)
        and not isinstance(value, dict)
        and not (isinstance(value, list) and value and isinstance(value[0], dict))
    )


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return _clean(str(value))
