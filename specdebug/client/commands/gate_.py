"""Fail a build on a regression, and on nothing less.

The run is compared with its baseline by the server's own rules: noise passes, a loss that is
certain fails, and what the figures cannot tell has an exit code of its own.
"""

from __future__ import annotations

import argparse
from typing import Any

from specdebug.client.commands.console import (
    INCONCLUSIVE,
    OK,
    WORSE,
    options,
    shown,
    with_client,
)

EXAMPLES = """examples:
  specdebug gate nightly/R41 --baseline nightly/R0
  specdebug gate nightly/R41 --metric accept_len || exit $?
  specdebug gate nightly/R41 --inconclusive-passes

exit code: 0 no regression, 1 regression, 2 usage, 3 inconclusive or not comparable,
           4 refused, 5 no server"""
PASSING = ("improvement", "no material change", "small change")


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("name", metavar="NAME", help="slug/R3")
    parser.add_argument("--baseline", metavar="NAME", help="else the investigation's")
    parser.add_argument("--metric", choices=("tok_s", "accept_len", "step_ms"), default="tok_s")
    parser.add_argument(
        "--inconclusive-passes", action="store_true", help="exit 0 where the figures cannot tell"
    )


def run(args: argparse.Namespace) -> int:
    name = args.name

    def work(client: Any) -> int:
        baseline = args.baseline
        if baseline is None:
            slug = name.partition("/")[0]
            label = client.investigation(slug).data["baseline"]
            if label is None:
                raise LookupError(f"{slug} has no baseline; name one with --baseline")
            baseline = f"{slug}/{label}"
        told = client.compare([name], baseline)
        row = next((r for r in told["runs"] if r["run"] != told["baseline"]), None)
        if row is None:
            raise LookupError(f"{name} is the baseline itself")
        delta = next(d for d in row["deltas"] if d["metric"] == args.metric)
        code, words = judged(row, delta)
        if code == INCONCLUSIVE and args.inconclusive_passes:
            code = OK
        shown({"exit_code": code, "run": row, "baseline": told["baseline"]}, args.json, [words])
        return code

    return with_client(args, work)


def judged(row: dict[str, Any], delta: dict[str, Any]) -> tuple[int, str]:
    """The exit code of a comparison and its sentence."""
    if row["not_comparable"]:
        return INCONCLUSIVE, f"not comparable: {row['not_comparable']}"
    if delta["verdict"] is None:
        return INCONCLUSIVE, f"one of the two has no {delta['metric']}"
    sentence = str(delta["sentence"])
    if delta["verdict"] == "regression":
        return WORSE, sentence
    return (OK if delta["verdict"] in PASSING else INCONCLUSIVE), sentence
