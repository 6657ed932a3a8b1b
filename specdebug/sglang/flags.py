"""A launch command as the engine sees it: argv, environment, flags by the engine's own names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from specdebug.sglang import shell
from specdebug.sglang.patterns import regex
from specdebug.sglang.shell import Word

Engine = Literal["sglang", "vllm", "unknown"]
Value = bool | int | float | str | list["Value"] | dict[str, "Value"] | None


@dataclass(frozen=True)
class FlagValue:
    """One flag of a command.

    `value` is typed (int, float, bool, str, or parsed JSON), `raw` is the text that was given
    (empty for a switch), `line` the 1-based line of the input on which the flag stands.
    """

    value: Value
    raw: str
    flag_as_written: str
    line: int


@dataclass(frozen=True)
class CommandProblem:
    """Something the engine would refuse, or that reads two ways; `line` is 1-based."""

    line: int
    message: str


@dataclass(frozen=True)
class LaunchCommand:
    """One launch of an engine: `flags` by the engine's own names (`tp_size`, not `--tp`).

    Flags that no release read has are kept under their plain name and listed in `unknown`.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    engine: Engine
    flags: Mapping[str, FlagValue]
    line: int = 1
    positionals: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    problems: tuple[CommandProblem, ...] = field(default=())

    def value(self, dest: str) -> Value:
        """The value given for `dest`, or None when the flag is absent."""
        given = self.flags.get(dest)
        return None if given is None else given.value


_SGLANG_MODULES = ("sglang.launch_server", "sglang.srt.entrypoints.http_server")
_VLLM_MODULES = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server")
# vLLM's flags that matter here; `--speculative-config` is what tells it from SGLang.
_VLLM_FLAGS: dict[str, tuple[str, str]] = {
    "--speculative-config": ("speculative_config", "json"),
    "-sc": ("speculative_config", "json"),
    "--spec-method": ("spec_method", "text"),
    "--spec-model": ("spec_model", "text"),
    "--spec-tokens": ("spec_tokens", "int"),
    "--num-speculative-tokens": ("num_speculative_tokens", "int"),
    "--speculative-model": ("speculative_model", "text"),
    "--model": ("model", "text"),
    "--tensor-parallel-size": ("tp_size", "int"),
    "-tp": ("tp_size", "int"),
    "--max-num-seqs": ("max_num_seqs", "int"),
    "--max-model-len": ("max_model_len", "size"),
    "--enforce-eager": ("enforce_eager", "switch"),
    "--gpu-memory-utilization": ("gpu_memory_utilization", "float"),
    "--trust-remote-code": ("trust_remote_code", "switch"),
    "--host": ("host", "text"),
    "--port": ("port", "int"),
    "--dtype": ("dtype", "text"),
}
_SIZES = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZES |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
# A line without any of these launches nothing, sets no variable and holds no flag.
_TELLING = regex(r"[-=$]|sglang|vllm|serve|launch")
_IMAGE = regex(r"(?:[\w.-]+/)*vllm-openai(?:[:@]\S+)?$")
_NUMBER = regex(r"-\d+$|-\d*\.\d+$")


@cache
def _sglang_flags() -> dict[str, tuple[str, str]]:
    """Option -> (name inside the engine, kind), from the argument parser of 0.5.10.post1 and the
    rules."""
    table = json.loads(Path(__file__).with_name("flags.json").read_text(encoding="utf-8"))
    return {option: (dest, kind) for option, (dest, kind) in table.items()}


def _options(engine: Engine) -> dict[str, tuple[str, str]]:
    return _VLLM_FLAGS if engine == "vllm" else _sglang_flags()


def parse_command(text: str) -> list[LaunchCommand]:
    """Every engine launch in `text`: shell, scripts, docker, compose or Kubernetes YAML, traces.

    Returns an empty list when there is none; never raises on bad input.
    """
    return list(_parsed(text[: shell.MAX_TEXT]))


@lru_cache(maxsize=2)
def _parsed(text: str) -> tuple[LaunchCommand, ...]:
    """The launches in `text`; a paste is read once to tell what it is and once more for them."""
    launches: list[LaunchCommand] = []
    for command in _joined(shell.commands(text, _TELLING)):
        if not any(word.text == "[-h]" for word in command.words[:6]):  # a page of help
            launches += _launches(command.words, command.variables, command.problems, depth=0)
    return tuple(launches)


def _joined(commands: list[shell.Command]) -> list[shell.Command]:
    """Kubernetes' `command:` and `args:` lists joined: a bare launcher takes the flags after it."""
    out: list[shell.Command] = []
    for command in commands:
        if len(command.words) == 1 and command.words[0].text.endswith(":"):
            continue  # a YAML key left over from the list under it
        if out and command.words[0].text.startswith("--"):
            texts = [word.text for word in out[-1].words]
            if _launcher(texts)[0] == len(texts):
                out[-1].words += command.words
                out[-1].problems += command.problems
                continue
        out.append(command)
    return out


def parse_argv(argv: Sequence[str]) -> LaunchCommand:
    """The launch that `argv` makes; assignments and wrappers in front of the engine are understood.

    Without a launcher in it, all of `argv` is read as the engine's own arguments.
    """
    words = [Word(text, 1) for text in argv]
    found = _launches(words, {}, [], depth=0)
    return found[0] if found else _read(words, 0, _guess(words), {}, [])


def _launches(
    words: Sequence[Word],
    variables: Mapping[str, str],
    problems: Sequence[tuple[int, str]],
    depth: int,
) -> list[LaunchCommand]:
    texts = [word.text for word in words]
    start, engine = _launcher(texts)
    if start is not None:
        return [_read(words, start, engine, {**variables, **_environment(texts[:start])}, problems)]
    if depth < 3:
        # `bash -c "..."`, `docker run image bash -lc "..."`: the command is inside one word.
        for word in words:
            if len(word.text) > 20 and ("sglang" in word.text or "vllm" in word.text):
                if not re.search(r"\s", word.text):
                    continue
                inner: list[LaunchCommand] = []
                for command in shell.commands(word.text):
                    moved = [Word(w.text, w.line + word.line - 1) for w in command.words]
                    known = {**variables, **_environment(texts), **command.variables}
                    inner += _launches(moved, known, command.problems, depth + 1)
                if inner:
                    return inner
    guess = _guess(words)
    options = [text.split("=")[0] for text in texts if _is_flag(text)]
    count = sum(_resolve(option, guess)[0] is not None for option in options)
    if texts and texts[0].startswith("--") and (count >= 2 or texts[0].startswith("--spec")):
        # Arguments alone, as compose files have them: there lines need no backslash.
        kept = [problem for problem in problems if "backslash" not in problem[1]]
        return [_read(words, 0, guess, variables, kept)]
    return []


def _launcher(texts: Sequence[str]) -> tuple[int | None, Engine]:
    """Where the engine's own arguments begin, and which engine; None without a launcher."""
    for at, text in enumerate(texts):
        if text in _SGLANG_MODULES and at and texts[at - 1] == "-m":
            return at + 1, "sglang"
        if text in _VLLM_MODULES and at and texts[at - 1] == "-m":
            return at + 1, "vllm"
        base = text.rsplit("/", 1)[-1]
        following = texts[at + 1] if at + 1 < len(texts) else ""
        if base == "sglang" and following in ("serve", "launch_server"):
            return at + 2, "sglang"
        if base == "vllm" and following == "serve":
            return at + 2, "vllm"
        if base == "launch_server.py":
            return at + 1, "sglang"
        if base == "launch_server" and following.startswith("-"):
            return at + 1, "sglang"
        # An image whose entry point is the server: only flags follow it.
        if "vllm-openai" in text and _IMAGE.match(text) and following.startswith("-"):
            return at + 1, "vllm"
    return None, "unknown"


def _environment(texts: Sequence[str]) -> dict[str, str]:
    """Variables set in front of the launcher: `A=b cmd`, `env A=b`, `docker run -e A=b`,
    `--env=A=b`."""
    values: dict[str, str] = {}
    for at, text in enumerate(texts):
        candidate = text.removeprefix("--env=")
        if (
            candidate == text
            and text.startswith("-e")
            and "=" in text
            and not text.startswith("-e=")
        ):
            candidate = text[2:]
        if at and texts[at - 1].startswith("-") and texts[at - 1] not in ("-e", "--env"):
            continue
        if match := re.match(r"^([A-Za-z_]\w*)=(.*)$", candidate, re.DOTALL):
            values[match[1]] = match[2]
    return values


def _guess(words: Sequence[Word]) -> Engine:
    given = {word.text.split("=")[0] for word in words}
    if given & {"--speculative-config", "--max-num-seqs", "--gpu-memory-utilization"}:
        return "vllm"
    return "sglang" if any(flag in _sglang_flags() for flag in given) else "unknown"


def _read(
    words: Sequence[Word],
    start: int,
    engine: Engine,
    env: Mapping[str, str],
    odd: Sequence[tuple[int, str]],
) -> LaunchCommand:
    """Arguments from `start` on, read as the engine's parser would: prefixes, `=`, the last one
    counts."""
    flags: dict[str, FlagValue] = {}
    unknown: list[str] = []
    positionals: list[str] = []
    problems = [CommandProblem(line, message) for line, message in odd]
    at = start
    while at < len(words):
        word = words[at]
        at += 1
        if not word.text.startswith("-") or _NUMBER.match(word.text) or word.text in ("-", "--"):
            positionals.append(word.text)
            continue
        written, equals, attached = word.text.partition("=")
        option, dest, kind, note = _resolve(written, engine)
        if note:
            problems.append(CommandProblem(word.line, note))
        if option is None:
            unknown.append(dest)
        values: list[str] = [attached] if equals else []
        many = kind.endswith("s") and kind != "switch"
        if not equals and kind != "switch":
            while at < len(words) and not _is_flag(words[at].text) and (many or not values):
                values.append(words[at].text)
                at += 1
        value, trouble = _typed(kind, values, written)
        if trouble:
            problems.append(CommandProblem(word.line, trouble))
        if dest in flags and flags[dest].value != value:
            problems.append(
                CommandProblem(
                    word.line,
                    f"{written} is given twice ({flags[dest].raw or 'set'}, then "
                    f"{' '.join(values) or 'set'}): the last one counts",
                )
            )
        flags[dest] = FlagValue(value, " ".join(values), written, word.line)
    if engine == "vllm" and positionals and "model" not in flags:
        flags["model"] = FlagValue(positionals[0], positionals[0], "", words[0].line)
    if engine == "sglang" and positionals and "model_path" not in flags:
        flags["model_path"] = FlagValue(positionals[0], positionals[0], "", words[0].line)
    elif engine == "sglang" and positionals:
        problems.append(
            CommandProblem(
                words[0].line,
                f"{positionals[0][:60]!r} belongs to no flag: the engine refuses stray words",
            )
        )
    if "config" in flags and engine == "sglang":
        problems.append(
            CommandProblem(
                flags["config"].line,
                f"arguments inside {flags['config'].raw} are not seen; give its content too",
            )
        )
    return LaunchCommand(
        argv=tuple(word.text for word in words),
        env=dict(env),
        engine=engine,
        flags=flags,
        line=words[0].line if words else 1,
        positionals=tuple(positionals),
        unknown=tuple(unknown),
        problems=tuple(problems),
    )


def _is_flag(text: str) -> bool:
    return len(text) > 1 and text[0] == "-" and not _NUMBER.match(text) and not text[1].isspace()


@lru_cache(maxsize=4096)
def _resolve(written: str, engine: Engine) -> tuple[str | None, str, str, str]:
    """(option, dest, kind, note) of a flag as written; option is None for a flag not known."""
    options = _options(engine)
    if written in options:
        return written, *options[written], ""
    plain = written.lstrip("-").replace("-", "_")
    if written.replace("_", "-") in options:
        option = written.replace("_", "-")
        return (
            option,
            *options[option],
            ("" if engine == "vllm" else f"{written}: the engine knows {option}, with dashes"),
        )
    if written.startswith("--") and engine != "vllm":
        # The engine's parser takes any unambiguous beginning of a flag.
        starts = sorted({options[o] for o in options if o.startswith(written)})
        if len(starts) == 1:
            option = next(o for o in options if o.startswith(written))
            return option, *options[option], ""
        if len(starts) > 1:
            close = ", ".join(sorted(o for o in options if o.startswith(written))[:4])
            return None, plain, "guess", f"{written} could be {close}: the engine refuses it"
    return None, plain, "guess", ""


def _typed(kind: str, values: list[str], written: str) -> tuple[Value, str]:
    """The value as the engine's parser types it, and what it would object to."""
    if kind == "switch":
        if not values:
            return True, ""
        lowered = values[0].lower()
        return lowered not in ("false", "0", "no"), f"{written} is a switch and takes no value"
    if kind == "guess":
        if not values:
            return True, ""
        return _plain(values[0]), ""
    if not values:
        return (None, "") if kind.endswith(("?", "s")) else (None, f"{written} needs a value")
    many = kind.endswith("s")
    base = kind.rstrip("?").removesuffix("s") if many else kind.rstrip("?")
    out: list[Value] = []
    for raw in values:
        try:
            out.append(_convert(base, raw))
        except (ValueError, RecursionError):
            wanted = {"int": "a whole number", "size": "a whole number (1k, 1Ki)", "json": "JSON"}
            out.append(raw)
            return (
                out if many else raw
            ), f"{written} {raw[:40]!r} is not {wanted.get(base, 'a number')}"
    return (out if many else out[0]), ""


def _convert(kind: str, raw: str) -> Value:
    if kind == "int":
        return int(raw)
    if kind == "float":
        return float(raw)
    if kind == "size":
        suffixed = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)(Ki|Mi|Gi|Ti|k|M|G|T)", raw.strip())
        if suffixed:
            return int(float(suffixed[1]) * _SIZES[suffixed[2]])
        return int(raw)
    if kind == "json":
        parsed: Value = json.loads(raw)
        return parsed
    return raw


def _plain(raw: str) -> Value:
    for convert in (int, float):
        try:
            return convert(raw)
        except ValueError:
            continue
    if raw[:1] in "{[":
        try:
            parsed: Value = json.loads(raw)
            return parsed
        except (ValueError, RecursionError):
            return raw
    return raw
