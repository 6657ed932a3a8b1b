"""Show what became of the hypotheses: was the change applied, did the prediction hold."""

from __future__ import annotations

import argparse
from typing import Any

from specdebug.client.commands.console import OK, options, shown, with_client

EXAMPLES = """examples:
  specdebug verdict kimi-k2-5
  specdebug verdict kimi-k2-5/R3"""


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("name", metavar="INVESTIGATION[/R3]")


def run(args: argparse.Namespace) -> int:
    def work(client: Any) -> int:
        slug, _, label = args.name.partition("/")
        found = [v for v in client.investigation(slug).verdicts() if v["in_force"]]
        if label:
            found = [v for v in found if v["run"] == label.upper()]
        lines = []
        for v in found:
            by = f" (by {v['decided_by']})" if v["decided_by"] else ""
            lines += [
                f"{v['hypothesis']} after {v['run']}: {v['outcome']}{by}",
                f"  applied: {v['applied']}: {v['applied_reason']}",
                f"  {v['outcome_reason']}",
            ]
        shown(found, args.json, lines or ["no verdict yet"])
        return OK

    return with_client(args, work)
