"""Put runs beside a baseline, with intervals and sample sizes."""

from __future__ import annotations

import argparse
from typing import Any

from specdebug.client.commands.console import OK, options, shown, table, with_client

EXAMPLES = """examples:
  specdebug compare kimi-k2-5/R1 kimi-k2-5/R2 --baseline kimi-k2-5/R0
  specdebug compare kimi-k2-5/R1 kimi-k2-5/R3 --json"""


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument(
        "runs", nargs="+", metavar="NAME", help="slug/R1, two to eight with the baseline"
    )
    parser.add_argument("--baseline", metavar="NAME", help="else the goal's, else the first")


def run(args: argparse.Namespace) -> int:
    def work(client: Any) -> int:
        told = client.compare(args.runs, args.baseline)
        shown(told, args.json, lines(told))
        return OK

    return with_client(args, work)


def lines(told: dict[str, Any]) -> list[str]:
    """A comparison as lines: the figures, what each change is made of, what differs."""
    rows = []
    for row in told["runs"]:
        cells = [row["run"]]
        for delta in row["deltas"]:
            value = "-" if delta["value"] is None else f"{delta['value']:.4g}"
            change = "" if delta["ratio"] is None else f" ({100 * (delta['ratio'] - 1):+.1f} %)"
            cells.append(f"{delta['metric']} {value}{change}")
        rows.append([*cells, row["title"]])
    found = [*table(rows), ""]
    for row in told["runs"]:
        if row["run"] == told["baseline"]:
            continue
        if row["not_comparable"]:
            found.append(f"{row['run']}: not comparable: {row['not_comparable']}")
            continue
        sentence = row["deltas"][0]["sentence"]
        found.append(f"{row['run']}: {sentence or 'no figure to compare'}")
        found += [f"  {row['split']}"] if row["split"] else []
    found += [told["noise"]]
    found += [
        f"  {line['key']}: {', '.join(str(value) for value in line['values'])}"
        for line in told["differences"]
    ]
    return found
