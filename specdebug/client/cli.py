"""The `specdebug` command: check, preflight and explain work on one's own machine without a server;
the commands that talk to one are in `commands` and loaded when they are asked for."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from specdebug.diagnosis.catalogue import CatalogueEntry
    from specdebug.diagnosis.diagnose import Diagnosis
    from specdebug.diagnosis.facts import Input

__all__ = ["main", "program"]

OK, FAULTS, UNUSABLE = 0, 1, 2
LARGEST_STDIN = 1 << 30


def program() -> int:
    """What the installed command runs: `main`, without a last search of all that was loaded for
    garbage, a sixth of the time of a small check."""
    try:
        return main()
    finally:
        gc.freeze()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns 0 without a fault, 1 with faults, 2 with unusable input or usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    rest: list[str] = []
    if words[:1] in (["run"], ["sweep"]) and "--" in words:
        # What follows is the engine's; argparse would take our own options for it, too.
        rest = words[words.index("--") + 1 :]
        words = words[: words.index("--")]
    parser = _parser(words[0] if words else None)
    args = parser.parse_args(words)
    args.command_name, args.server_args = words[0], rest
    try:
        code: int = args.run(args)
    except BrokenPipeError:
        # The reader of a pipe went away; closing quietly is what other commands do.
        sys.stderr.close()
        return OK
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return code


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="specdebug",
        description="Find out why speculative decoding is slow, from logs, commands and configs.",
        epilog="Exit code: 0 no fault, 1 faults found, 2 an input could not be used.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    check = commands.add_parser(
        "check",
        help="find faults in logs, commands, configs, benchmark output and notes",
        description="Read every FILE, tell what it is by its content, and report what is wrong.",
    )
    check.add_argument("files", nargs="*", metavar="FILE", help="a file, or - for standard input")
    _common(check)
    check.set_defaults(run=_check)

    preflight = commands.add_parser(
        "preflight",
        help="say what a launch command will really do, before it is started",
        description="Everything after -- is the command, or a file that holds it; it is read, "
        "never run.",
    )
    _common(preflight)
    preflight.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD ...")
    preflight.set_defaults(run=_preflight)

    explain = commands.add_parser("explain", help="explain a finding code, or list all codes")
    explain.add_argument("code", nargs="?", help="a code such as draft-tokens-overridden")
    explain.add_argument("--json", action="store_true", help="print JSON")
    explain.set_defaults(run=_explain)
    if chosen not in commands.choices:
        from specdebug.client import commands as with_server

        with_server.add(commands, chosen)
    return parser


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine-version", metavar="V", help="the engine's release, as 0.5.9")
    parser.add_argument(
        "--baseline",
        metavar="TOK_S",
        type=_positive,
        help="output tokens per second without speculation",
    )
    parser.add_argument("--json", action="store_true", help="print JSON (docs/check-json.md)")
    parser.add_argument(
        "--quiet", action="store_true", help="print faults only, one line each, or nothing"
    )


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of tokens per second")
    return value


def _check(args: argparse.Namespace) -> int:
    names: list[str] = args.files
    if not names:
        if sys.stdin.isatty():
            print("specdebug check: name a file, or pipe text in", file=sys.stderr)
            return UNUSABLE
        names = ["-"]
    if names.count("-") > 1:
        print("specdebug check: standard input (-) can be given once", file=sys.stderr)
        return UNUSABLE
    inputs = [found for name in names for found in _inputs(name)]
    return _answer(args, inputs)


def _inputs(name: str) -> list[Input]:
    from specdebug.diagnosis.facts import Input

    if name == "-":
        data = sys.stdin.buffer.read(LARGEST_STDIN)
        return [Input("standard input", data)]
    return [Input(name, Path(name))]


def _preflight(args: argparse.Namespace) -> int:
    import shlex

    from specdebug.diagnosis.facts import Input

    words = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not words:
        print("specdebug preflight: put the launch command after --", file=sys.stderr)
        return UNUSABLE
    if len(words) == 1 and not words[0].startswith("-") and _is_file(words[0]):
        return _answer(args, [Input(words[0], Path(words[0]))])
    text = words[0] if len(words) == 1 else shlex.join(words)
    return _answer(args, [Input("command", text.encode("utf-8", "surrogateescape"))])


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # a whole command is no path that could be looked up
        return False


def _answer(args: argparse.Namespace, inputs: list[Input]) -> int:
    from specdebug.diagnosis.diagnose import diagnose, to_json
    from specdebug.diagnosis.gather import build_case

    case = build_case(inputs, engine_version=args.engine_version, baseline=args.baseline)
    found = diagnose(case)
    if args.json:
        _print_json(to_json(found))
    elif args.quiet:
        for finding in found.faults:
            print(f"{finding.severity} {finding.code}: {finding.statement}")
        for given in found.unusable:
            print(f"{given.name}: {given.unusable}", file=sys.stderr)
    else:
        _show(found, sys.stdout)
    if found.unusable:
        return UNUSABLE
    return FAULTS if found.faults else OK


def _show(found: Diagnosis, out: TextIO) -> None:
    from specdebug.client import terminal

    for line in terminal.report(found, colour=out.isatty()):
        print(line, file=out)


def _explain(args: argparse.Namespace) -> int:
    from specdebug.diagnosis.catalogue import CATALOGUE

    if args.code is None and args.json:
        _print_json([_entry(entry) for entry in CATALOGUE.values()])
        return OK
    if args.code is None:
        width = max(len(code) for code in CATALOGUE)
        for entry in CATALOGUE.values():
            print(f"{entry.code:<{width}}  {entry.title}")
        return OK
    known = CATALOGUE.get(args.code)
    if known is None:
        import difflib

        near = difflib.get_close_matches(args.code, CATALOGUE, n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else "; `specdebug explain` lists all"
        print(f"specdebug explain: no finding is called {args.code!r}{hint}", file=sys.stderr)
        return UNUSABLE
    if args.json:
        _print_json(_entry(known))
        return OK
    import textwrap

    print(f"{known.code}: {known.title} ({known.family})\n")
    print(textwrap.fill(known.explanation, 88))
    return OK


def _entry(entry: CatalogueEntry) -> dict[str, str]:
    return {
        "code": entry.code,
        "title": entry.title,
        "family": entry.family,
        "explanation": entry.explanation,
    }


def _print_json(data: Any) -> None:
    import json

    json.dump(data, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    sys.exit(program())
