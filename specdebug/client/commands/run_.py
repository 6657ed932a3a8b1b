"""Queue a run for a worker and follow it to its end.

What comes after -- are the engine's own flags, without interpreter, host and port.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from specdebug.client.api import Client, Run
from specdebug.client.commands.bar import Bar
from specdebug.client.commands.console import (
    FAILED,
    OK,
    UNUSABLE,
    figure,
    options,
    shown,
    with_client,
)

EXAMPLES = """examples:
  specdebug run kimi-k2-5 --title "3 draft steps" --baseline R0 --engine sglang -- \\
      --model-path /models/k2 --tp 8 --speculative-algorithm EAGLE3 --speculative-num-steps 3
  specdebug run kimi-k2-5 --title plain --workload repeats=5 --no-wait -- --model-path /models/k2
  specdebug run --follow kimi-k2-5/R3

exit code: 0 measured, 2 usage, 4 refused, 5 no server, 6 failed, cancelled or lost"""


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("investigation", nargs="?", metavar="INVESTIGATION")
    parser.add_argument("--follow", metavar="NAME", help="follow a run that is there, slug/R3")
    parser.add_argument("--title", help="what it is, in a few words")
    parser.add_argument("--engine", help="reference, sglang, sglang-cpu or attached")
    parser.add_argument("--release", dest="engine_release", help="the engine's release")
    parser.add_argument("--hypothesis", metavar="H1", help="what it tests")
    parser.add_argument("--baseline", metavar="R0", help="what it is compared with")
    parser.add_argument("--follows", metavar="R1", help="what it changes")
    parser.add_argument("--strict", action="store_true", help="refuse what is not used as asked")
    parser.add_argument(
        "--workload", action="append", default=[], metavar="NAME=VALUE", help="e.g. repeats=5"
    )
    parser.add_argument("--no-wait", action="store_true", help="queue it and return")
    parser.add_argument("--draft", action="store_true", help="plan it without queueing")


def run(args: argparse.Namespace) -> int:
    if bool(args.follow) == bool(args.investigation):
        print("specdebug run: name an investigation, or a run with --follow", file=sys.stderr)
        return UNUSABLE
    return with_client(args, lambda client: _run(client, args))


def _run(client: Client, args: argparse.Namespace) -> int:
    if args.follow:
        return followed(client.run(args.follow), args.json)
    names = ("engine", "engine_release", "hypothesis", "baseline", "follows")
    fields = {name: getattr(args, name) for name in names if getattr(args, name)}
    if args.strict:
        fields["strict"] = True
    inv = client.investigation(args.investigation)
    made = inv.plan(
        args.title or "run from the command line",
        args.server_args,
        queue=not args.draft,
        workload=workload(args.workload),
        **fields,
    )
    if args.draft or args.no_wait:
        shown(made.data, args.json, [f"{made.name}: {made.data['state']}"])
        return OK
    return followed(made, args.json)


def workload(pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs as a workload; numbers and true/false as such."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise ValueError(f"--workload {pair!r}: write NAME=VALUE, as repeats=5")
        found[name] = _value(text)
    return found


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def followed(run: Run, as_json: bool) -> int:
    """Follow a run to its end with a progress bar on a terminal, a line per phase elsewhere."""
    bar = Bar(run.name)

    def show(now: dict[str, Any]) -> None:
        bar.show(_standing(now), now["fraction"] or 0.0, now["phase_detail"])

    try:
        run.wait(progress=show)
    except KeyboardInterrupt:
        bar.end()
        print(f"{run.name} goes on; `specdebug run --follow {run.name}` sees it", file=sys.stderr)
        raise
    bar.end()
    data = run.data
    lines = [f"{run.name}: {data['state']}" + (f", {data['reason']}" if data["reason"] else "")]
    if data["metrics"]:
        speed, length = figure(data["metrics"], "tok_s"), figure(data["metrics"], "accept_len")
        lines.append(f"{speed} tok/s, accept length {length}")
    codes = run.full()["findings"]
    lines += [f"found: {', '.join(codes)}"] if codes else []
    shown(data, as_json, lines)
    return OK if data["state"] == "done" else FAILED


def _standing(now: dict[str, Any]) -> str:
    """Where a run stands, in words."""
    if now["state"] != "queued":
        return str(now["phase"] or now["state"])
    behind = now["waiting_behind"]
    return f"queued, {behind} before it" if behind else "queued, next"
