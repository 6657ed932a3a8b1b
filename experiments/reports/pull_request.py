"""A report as Markdown for a pull request: short, in plain tables, with nothing that acts.

What people and logs wrote is quoted as text: no HTML, no links that they chose, nobody is notified.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from experiments.reports.document import Document
from experiments.reports.sections import SECTIONS

LONGEST_CELL = 400
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def text(value: object, longest: int = LONGEST_CELL) -> str:
    """One line of text that Markdown leaves alone."""
    flat = " ".join(str(value).split())
    if len(flat) > longest:
        flat = flat[: longest - 1].rstrip() + "…"
    # "@name" and "#12" would notify people and link issues: a zero-width space parts them.
    flat = re.sub(r"@(?=\w)", "@\u200b", flat)
    flat = re.sub(r"(?<=#)(?=\d)", "\u200b", flat)
    flat = re.sub(r"(?i)(https?|ftp|www)(?=[:.])", "\\1\u200b", flat)
    return _SPECIAL.sub(r"\\\1", flat)


def code(value: object) -> str:
    """One line as code; backticks in it become apostrophes."""
    flat = " ".join(str(value).split()).replace("`", "'").replace("|", "¦")
    return f"`{flat[:LONGEST_CELL]}`" if flat else "–"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    names = list(head)
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _figure(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def markdown(document: Document) -> str:
    """The document for a pull request or an issue: what a reviewer needs, in a screen or two."""
    body, told = document.body, document.told
    stamp = body["stamp"]
    version = f"version {stamp['number']}" if stamp else "draft"
    lines = [f"## {text(told['title'], 200)}", ""]
    lines += [f"Post-mortem, {version}, investigation {told['state']}, as of {body['as_of'][:10]}."]
    if told["exception"]:
        lines += ["", f"**Closed by a signed exception.** {text(told['exception'], 1000)}"]
    if body["reference_engine"]:
        lines += [
            "",
            "Some figures are the small reference engine's on a CPU: a pattern, no speed.",
        ]
    if body["recorded"]:
        single = ", unreplicated" if document.unreplicated else ""
        one = ", one a run" if document.unreplicated else ""
        lines += ["", f"Recorded{single}: some figures come from a write-up{one}."]
    lines.append("")
    lines += [f"- **{s['lead']}.** {text(s['text'], 1500)}" for s in told["summary"]]
    for key in body["sections"]:
        part = _PARTS.get(key)
        found = part(told) if part else []
        if found:
            lines += ["", f"### {SECTIONS[key]}", "", *found]
        for remark in body["remarks"]:
            if remark["section"] == key:
                if not found:
                    lines += ["", f"### {SECTIONS.get(key, text(key))}"]
                    found = [""]
                who = f"**Added by {text(remark['author'])}, not measured:**"
                lines += ["", f"> {who} {text(remark['text'], 2000)}"]
    lines += ["", f"Document `{document.digest[:16]}`, made by specdebug {body['program']}.", ""]
    return "\n".join(lines)


def _next(told: Mapping[str, Any]) -> list[str]:
    return [
        f"{n}. **{text(a['action'])}** ({a['effort']}): settles {text(a['settles'])}"
        for n, a in enumerate(told["advice"][:5], start=1)
    ]


def _causes(told: Mapping[str, Any]) -> list[str]:
    rows = [
        b
        for b in told["bugs"]
        if b["cause"] and b["severity"] in ("critical", "high") and b["state"] in ("open", "fixed")
    ]
    lines = []
    for bug in rows:
        state = f"fixed, verified in {bug['fixed_in']}" if bug["state"] == "fixed" else "open"
        lines.append(
            f"- **{text(bug['title'])}** ({code(bug['code'])}, {bug['severity']}, {state}): "
            f"{text(bug['statement'], 600)}"
        )
        for quote in bug["quotes"][:3]:
            line = "" if quote["line"] is None else f", line {quote['line']}"
            lines.append(f"  - {text(quote['source'])}{line}: {code(quote['text'])}")
    return lines


def _bugs(told: Mapping[str, Any]) -> list[str]:
    rows = [b for b in told["bugs"] if b["state"] == "open"]
    if not rows:
        return []
    return _table(
        ("bug", "severity", "life", "what it is"),
        (
            (
                f"{text(b['title'])} {code(b['code'])}",
                b["severity"],
                text(", ".join(b["life"])),
                text(b["statement"]),
            )
            for b in rows
        ),
    )


def _runs(told: Mapping[str, Any]) -> list[str]:
    if not told["runs"]:
        return []
    return _table(
        ("run", "tok/s", "n", "accept length", "step, ms", "change", "judged"),
        (
            (
                f"**{r['label']}** {text(r['title'], 120)}",
                _figure(r["tok_s"], 1) + (f" ± {r['sd']:.1f}" if r["sd"] is not None else ""),
                str(r["n"]),
                _figure(r["accept_len"], 2),
                _figure(r["step_ms"], 1),
                "–" if r["change_percent"] is None else f"{r['change_percent']:+.1f} %",
                r["verdict"] or "–",
            )
            for r in told["runs"]
        ),
    )


def _figures(told: Mapping[str, Any]) -> list[str]:
    return [f"- **{text(i['heading'])}.** {text(i['text'], 1200)}" for i in told["insights"]]


def _hypotheses(told: Mapping[str, Any]) -> list[str]:
    if not told["hypotheses"]:
        return []
    return _table(
        ("hypothesis", "predicted", "applied", "prediction"),
        (
            (
                f"**{h['label']}** {text(h['claim'])}",
                text(h["prediction"] or "nothing"),
                h["applied"]["applied"] if h["applied"] else "–",
                h["outcome"]["outcome"] if h["outcome"] else "–",
            )
            for h in told["hypotheses"]
        ),
    )


_PARTS = {
    "next": _next,
    "causes": _causes,
    "bugs": _bugs,
    "runs": _runs,
    "figures": _figures,
    "hypotheses": _hypotheses,
}
