"""Commands with what the file named by --config adds to them; where it is not there, with a word on
it: what such a command leaves out is not known to be left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from specdebug.diagnosis.facts import FRAGMENT, Fact, Launch
from specdebug.sglang.config_file import read_config

__all__ = ["arguments_in", "completed", "unseen"]

CONFIG = "config"
Arguments = Mapping[str, Fact]


def arguments_in(text: str, source: str) -> Arguments:
    """The arguments that a config body in this text sets, {} where there is none."""
    return {
        dest: Fact(given.value, source, given.line, f"{given.flag_as_written} {given.raw}".strip())
        for dest, given in read_config(text).items()
    }


def completed(launches: Sequence[Launch], configs: Mapping[str, Arguments]) -> tuple[Launch, ...]:
    """The commands with the arguments of their config files; the command line wins, as in the
    engine. A config file that a command names is no command of its own."""
    used: set[str] = set()
    out: list[Launch] = []
    for launch in launches:
        named = launch.requested.get(CONFIG)
        if named is None or launch.engine == "vllm":
            out.append(launch)
            continue
        source = _source_of(str(named.value), launch, configs)
        if source is None:
            # Flags known in part: nothing follows from one that is absent.
            out.append(replace(launch, engine=FRAGMENT))
            continue
        used.add(source)
        whole = {**configs[source], **launch.requested}
        del whole[CONFIG]
        out.append(replace(launch, requested=whole))
    return tuple(x for x in out if not (x.engine == FRAGMENT and x.source in used))


def _source_of(path: str, launch: Launch, configs: Mapping[str, Arguments]) -> str | None:
    """The input that holds the file: the one of its name, else the paste that holds the command."""
    name = PurePath(path).name
    same = [source for source in configs if PurePath(source).name == name]
    return same[0] if same else launch.source if launch.source in configs else None


def unseen(launch: Launch) -> str:
    """What has to be said of a command whose config file is not among the inputs; "" otherwise."""
    named = launch.requested.get(CONFIG)
    if named is None or launch.engine == "vllm":
        return ""
    return f"the file of {named.text} is not among the inputs: what it sets is not known"
