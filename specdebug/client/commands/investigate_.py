"""Open an investigation, show how one stands, or list them."""

from __future__ import annotations

import argparse
from typing import Any

from specdebug.client.api import Client, Investigation
from specdebug.client.commands.console import OK, figure, options, shown, table, with_client

EXAMPLES = """examples:
  specdebug investigate   # list them
  specdebug investigate kimi-k2-5   # how it stands
  specdebug investigate "Slow draft" --question "Why is the draft slower than no draft?"
  specdebug investigate --filter 'state = open AND title ~ kimi'"""


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("name", nargs="?", metavar="NAME", help="its address or title")
    parser.add_argument("--question", help="opens it where there is none")
    parser.add_argument("--context", help="Markdown: target, draft, hardware")
    parser.add_argument("--goal", type=float, metavar="FACTOR", help="of the baseline (1.0)")
    parser.add_argument("--filter", metavar="QUERY", help="which ones to list (docs/api.md)")


def run(args: argparse.Namespace) -> int:
    return with_client(args, lambda client: _one(client, args) if args.name else _all(client, args))


def _all(client: Client, args: argparse.Namespace) -> int:
    found = [row.data for row in client.investigations(args.filter, "-updated")]
    rows = [[row["slug"], row["state"], row["updated_at"][:16], row["title"]] for row in found]
    shown(found, args.json, table(rows) or ["none yet; open one with --question"])
    return OK


def _one(client: Client, args: argparse.Namespace) -> int:
    fields = {"context": args.context, "goal_value": args.goal}
    inv = client.investigation(
        args.name, args.question, **{k: v for k, v in fields.items() if v is not None}
    )
    standing, advice = inv.standing(), inv.advice()
    runs = [run.data for run in inv.runs(order="label")]
    findings = inv.findings("state = open")
    data = {
        "investigation": inv.data,
        "standing": standing,
        "runs": runs,
        "open_findings": findings,
        "advice": advice,
    }
    shown(data, args.json, _lines(inv, standing, runs, findings, advice))
    return OK


def _lines(
    inv: Investigation, standing: dict[str, Any], runs: list[Any], findings: list[Any], advice: Any
) -> list[str]:
    lines = [f"{inv.slug} ({inv.data['state']}): {inv.data['title']}", inv.data["question"], ""]
    lines.append(standing["goal"]["sentence"])
    lines += [f"  left: {text}" for text in standing["obstacles"]]
    if runs:
        lines.append("")
        lines += table(
            [
                [
                    run["label"],
                    run["state"],
                    figure(run["metrics"], "tok_s") + " tok/s",
                    "accept length " + figure(run["metrics"], "accept_len"),
                    run["title"],
                ]
                for run in runs
            ]
        )
    lines += [""] if findings else []
    lines += [f"open, {f['severity']}: {f['code']}: {f['statement']}" for f in findings]
    if advice:
        lines += ["", f"next: {advice[0]['action']} ({advice[0]['effort']})"]
        lines.append(f"  it settles: {advice[0]['settles']}")
    return lines
