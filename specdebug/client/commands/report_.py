"""Write the post-mortem of an investigation as PDF or JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from specdebug.client.commands.bar import Bar
from specdebug.client.commands.console import OK, options, shown, with_client

EXAMPLES = """examples:
  specdebug report kimi-k2-5   # writes kimi-k2-5.pdf
  specdebug report kimi-k2-5 -o report.json
  specdebug report kimi-k2-5 --json   # to standard output"""


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("investigation", metavar="INVESTIGATION")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=".pdf or .json")


def _pdf(inv: Any, to: Path) -> None:
    bar = Bar(to.name)

    def show(now: dict[str, Any]) -> None:
        bar.show(now["step"] or now["state"], now["fraction"])

    try:
        # Elsewhere than on a terminal a line for each page would be of no use to anybody.
        inv.report_pdf(to, progress=show if bar.live else None)
    finally:
        bar.end()


def run(args: argparse.Namespace) -> int:
    def work(client: Any) -> int:
        inv = client.investigation(args.investigation)
        to = args.output or Path(f"{inv.slug}.pdf")
        if args.json and args.output is None:
            shown(inv.report(), True, [])
            return OK
        if to.suffix == ".json":
            to.write_text(json.dumps(inv.report(), indent=1, ensure_ascii=False) + "\n")
        elif to.suffix == ".pdf":
            _pdf(inv, to)
        else:
            raise ValueError(f"{to}: the name must end in .pdf or .json")
        shown({"file": str(to)}, args.json, [str(to)])
        return OK

    return with_client(args, work)
