"""Write an investigation, with all its rows and files, as one archive."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from specdebug.client.commands.console import OK, options, shown, with_client

EXAMPLES = """examples:
  specdebug export kimi-k2-5   # writes kimi-k2-5.zip
  specdebug export kimi-k2-5 -o /backup/kimi.zip"""


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("investigation", metavar="INVESTIGATION")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE")


def run(args: argparse.Namespace) -> int:
    def work(client: Any) -> int:
        inv = client.investigation(args.investigation)
        to = inv.export(args.output or Path(f"{inv.slug}.zip"))
        size = to.stat().st_size
        shown({"file": str(to), "size": size}, args.json, [f"{to}, {size} bytes"])
        return OK

    return with_client(args, work)
