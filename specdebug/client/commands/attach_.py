"""Stream a live server's figures or a growing log into a run, until Ctrl-C or --for.

Nothing is started and nothing is changed on the server: its /metrics and /server_info are read,
its log is followed as it grows. A server that is started again is waited for, and a log that it
begins anew goes on behind the old one. Works for SGLang and vLLM.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdebug.client.api import Client, Run
from specdebug.client.commands.console import OK, UNUSABLE, options, shown, with_client

EXAMPLES = """examples:
  specdebug attach kimi-k2-5 --server http://gpu1:30000 --log /var/log/sglang.log
  specdebug attach kimi-k2-5 --log server.log --for 600 --title "peak hour" """
# Gauges of either engine, by the name under which they are kept; docs/metrics.md.
GAUGES = {
    "gen_throughput": "tok_s",
    "avg_generation_throughput_toks_per_s": "tok_s",
    "spec_accept_length": "accept_len",
    "spec_accept_rate": "accept_rate",
    "num_running_reqs": "running",
    "num_requests_running": "running",
    "num_queue_reqs": "queue",
    "num_requests_waiting": "queue",
    "token_usage": "token_usage",
}
LARGEST = 16 << 20


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("investigation", metavar="INVESTIGATION")
    parser.add_argument("--server", metavar="URL", help="of the engine, as http://gpu1:30000")
    parser.add_argument("--log", type=Path, metavar="FILE", help="its log; may not be there yet")
    parser.add_argument("--title", default="attached server")
    parser.add_argument("--engine", default="sglang", help="what the server is (sglang)")
    parser.add_argument("--baseline", metavar="R0")
    parser.add_argument("--hypothesis", metavar="H1")
    parser.add_argument("--for", dest="seconds", type=float, metavar="SECONDS")
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS")


def run(args: argparse.Namespace) -> int:
    if args.server is None and args.log is None:
        print("specdebug attach: name a --server, a --log, or both", file=sys.stderr)
        return UNUSABLE
    if args.every < 0.2:
        print("specdebug attach: --every must be 0.2 or more", file=sys.stderr)
        return UNUSABLE
    return with_client(args, lambda client: _attach(client, args))


def _attach(client: Client, args: argparse.Namespace) -> int:
    fields = {n: getattr(args, n) for n in ("baseline", "hypothesis") if getattr(args, n)}
    info = None if args.server is None else server_info(args.server)
    inv = client.investigation(args.investigation)
    run = inv.run(args.title, engine=args.engine, host=args.server or "", **fields)
    print(f"{run.name} takes it in; Ctrl-C ends it", file=sys.stderr)
    if args.log is not None:
        run.watch_log(args.log)
    seen = _Seen(info)
    try:
        _follow(run, args, seen)
    except KeyboardInterrupt:
        print("ending; what was seen is sent", file=sys.stderr)
    arrived = run.finish(server_info=seen.info)
    lines = [f"{run.name}: {run.data['state'] if arrived else 'its end waits in the spool'}"]
    lines += [f"{seen.missed} scrapes were not answered"] if seen.missed else []
    shown(run.data, args.json, lines)
    return OK


@dataclass
class _Seen:
    """What came of the scrapes: the server's own arguments, and how many were not answered."""

    info: dict[str, Any] | None
    missed: int = 0


def _follow(run: Run, args: argparse.Namespace, seen: _Seen) -> None:
    """Scrape until the time is over."""
    end = None if args.seconds is None else time.monotonic() + args.seconds
    step = 0
    while end is None or time.monotonic() < end:
        if args.server is not None:
            values = scraped(args.server)
            if values:
                run.log(step, values)
                # It may have been away when this began.
                seen.info = seen.info or server_info(args.server)
            else:
                seen.missed += 1
        step += 1
        left = args.every if end is None else min(args.every, end - time.monotonic())
        time.sleep(max(0.0, left))


def scraped(server: str) -> dict[str, float]:
    """The known gauges of a server's /metrics now; empty where it does not answer."""
    from specdebug.sglang.metrics import read_metrics

    text = _read(server, "metrics")
    if text is None:
        return {}
    found = read_metrics(text)
    values = {}
    for name, ours in GAUGES.items():
        value = found.get(name)
        if value is not None and ours not in values:
            values[ours] = value
    return values


def server_info(server: str) -> dict[str, Any] | None:
    """The server's own arguments; None where it does not tell."""
    import json

    for path in ("server_info", "get_server_info"):
        text = _read(server, path)
        if text is None:
            continue
        try:
            data = json.loads(text)
        except ValueError:
            continue
        if isinstance(data, dict):
            return data
    return None


def _read(server: str, path: str) -> str | None:
    import httpx

    try:
        with httpx.stream("GET", f"{server.rstrip('/')}/{path}", timeout=5.0) as answer:
            if answer.status_code != 200:
                return None
            data = b""
            for piece in answer.iter_bytes():
                data += piece
                if len(data) > LARGEST:
                    return None
            return data.decode("utf-8", "replace")
    except (httpx.HTTPError, httpx.InvalidURL):
        return None
