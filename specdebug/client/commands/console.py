"""What all of these commands share: the server's options, exit codes, and how answers are shown."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from specdebug.client.api import Client
from specdebug.client.http import ApiError, Unreachable

# Exit codes; docs/cli.md.
OK, WORSE, UNUSABLE, INCONCLUSIVE, REFUSED, UNREACHABLE, FAILED = 0, 1, 2, 3, 4, 5, 6


def options(parser: argparse.ArgumentParser) -> None:
    """--url, --token and --json, as every command has them."""
    parser.add_argument("--url", help="the server; else $SPECDEBUG_URL, else the kept login")
    parser.add_argument("--token", help="else $SPECDEBUG_TOKEN, else the kept login's")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def with_client(args: argparse.Namespace, work: Callable[[Client], int]) -> int:
    """Run `work` with a client; what the server or the disk says no to becomes an exit code."""
    name = f"specdebug {args.command_name}" if hasattr(args, "command_name") else "specdebug"
    try:
        with Client(args.url, args.token) as client:
            return work(client)
    except ApiError as no:
        print(f"{name}: {no}", file=sys.stderr)
        for obstacle in no.obstacles:
            print(f"  - {obstacle}", file=sys.stderr)
        return REFUSED
    except Unreachable as no:
        print(f"{name}: {no}", file=sys.stderr)
        print("  is it running? `specdebug doctor` looks at this machine", file=sys.stderr)
        return UNREACHABLE
    except (OSError, ValueError, LookupError) as no:
        print(f"{name}: {no}", file=sys.stderr)
        return UNUSABLE


def shown(data: Any, as_json: bool, lines: Iterable[str]) -> None:
    """The answer as JSON, or as lines for a person."""
    if as_json:
        json.dump(data, sys.stdout, indent=1, ensure_ascii=False, default=str)
        print()
        return
    for line in lines:
        print(clean(line))


def clean(text: str) -> str:
    """Without characters that would move the cursor or ring the bell: texts come from others."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with aligned columns."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def figure(metrics: dict[str, Any], name: str) -> str:
    """A metric with the number of repeats or points behind it."""
    found = metrics.get(name)
    if found is None:
        return "-"
    return f"{found['value']:.4g} (n={found['count']})"
