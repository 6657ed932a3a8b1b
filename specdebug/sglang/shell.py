"""Splits pasted shell, YAML and JSON into the words of each command, with lines; runs nothing."""

from __future__ import annotations

import itertools
import json
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from specdebug.sglang.patterns import regex
from specdebug.sglang.shell_lines import environment_of, folded, uncommented
from specdebug.sglang.shell_words import OPERATORS, Operator, Redirect, Word, words_of

__all__ = ["MAX_TEXT", "Command", "Word", "commands"]

MAX_TEXT = 200_000  # no command is longer; what follows is not looked at
_MAX_GROWN = 4 * MAX_TEXT
_MAX_VARIABLES = 300  # set in one text; further ones are not remembered
_QUOTED_LINES = 60
_LAUNCHES = regex(r"sglang|vllm|\bsh\b|bash")
_PROMPT = regex(r"^\s*(?:(?:\([\w.-]+\)\s*)?(?:[\w.-]+@[\w.-]+:?[^\s$#]*)?[$#]\s+|>\s+|\++\s+)")
_PROMPTED = regex(r"[@$#>|:]|^(?:command|args|entrypoint|CMD|ENTRYPOINT|cmd|script|run)\b")
_COMPOSE = regex(r"^[\w.-]+\s+\|\s(?=\s*(?:\+|python|sglang|vllm))")
_YAML_KEY = regex(
    r"^\s*(?:-\s+)?(?:command|args|entrypoint|CMD|ENTRYPOINT|cmd|script|run)\s*:?\s*"
    r"(?:[>|][+-]?\s*$|(?=\S))"
)
_YAML_ITEM = regex(r"^(\s*)-\s+(?P<item>\S.*?)\s*$")
_KEY = regex(r"[\w.-]+\s*:(?:\s|$)")
_FLAG = regex(r"^--?[a-z]")
_ASSIGNED = regex(r"^([A-Za-z_]\w*)=(.*)$", re.DOTALL)
_LONE = regex(r"[ \t]*[A-Za-z_]\w*=[\w./:-]*[ \t]*")  # an assignment with nothing to expand
_VARIABLE = regex(r"\$(?:\{(\w+)(?:\[[@*]\]|:?-([^}]*))?\}|(\w+))")
_ONLY_VARIABLE = regex(r"\$(?:\{\w+(?:\[[@*]\])?\}|\w+)")
_ARRAY = regex(r"^[ \t]*(\w+)\+?=\(([^()]{0,20000})\)[ \t]*$", re.MULTILINE)
_TYPOGRAPHY = str.maketrans(
    {"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'", "\u00a0": " ", "\u200b": ""}
)
_DASHES = regex(r"(?<!\S)(?:[\u2014\u2013\u2212]-?|-[\u2014\u2013\u2212])(?=[a-z])")

_NO_BACKSLASH = (
    "starts with a flag but the line before does not end in a backslash: "
    "a shell would stop there; read as one command"
)
_SPACES_AFTER = (
    "spaces after the backslash, so a shell does not continue there; read as one command"
)
_ONE_ITEM = (
    "one list item holds a flag and its value, which the engine gets as one word; "
    "give each its own item"
)


@dataclass
class Command:
    """The words of one simple command, what was odd about them, and variables set before it."""

    words: list[Word]
    problems: list[tuple[int, str]] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)


def commands(text: str, telling: re.Pattern[str] | None = None) -> list[Command]:
    """Every simple command in `text`; lists in YAML or JSON count as one command each.

    Lines in which `telling` finds nothing are not split: one empty word stands for a row of them.
    """
    text = text[:MAX_TEXT].lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    problems: list[tuple[int, str]] = []
    fixed = _DASHES.sub("--", text.translate(_TYPOGRAPHY))
    if fixed != text:
        line = next(
            n
            for n, (a, b) in enumerate(zip(text.split("\n"), fixed.split("\n"), strict=True), 1)
            if a != b
        )
        problems.append((line, "typographic quotes, spaces or dashes were read as plain ones"))
    lines = folded(uncommented(fixed.split("\n")))
    arrays, lines = _arrays(lines)
    found, rest = _listed(lines)
    environment = environment_of(lines)
    found += _shell(rest, problems, arrays, telling)
    for command in found:
        command.variables = environment | command.variables
    found.sort(key=lambda command: command.words[0].line)
    return found


def _listed(lines: list[str]) -> tuple[list[Command], list[str]]:
    """Commands written as JSON or YAML lists, and the lines with those blanked out."""
    rest = list(lines)
    found: list[Command] = []
    text = "\n".join(lines)
    taken = 0
    # At most fifty candidates: an unclosed string costs a scan to the end of the text each time.
    for match in itertools.islice(re.finditer(r"\[(?=\s*[\"'])", text), 50):
        try:
            value, end = json.JSONDecoder().raw_decode(text, match.start())
        except (ValueError, RecursionError):
            value, end = _python_list(text, match.end())
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value) or not value:
            continue
        line = text.count("\n", 0, match.start()) + 1
        last = line + text.count("\n", match.start(), end)
        if match.start() < taken:
            continue  # inside the list before
        taken = end
        found.append(Command([Word(v, line) for v in value]))
        for number in range(line, last + 1):
            rest[number - 1] = ""
    run: list[tuple[int, str]] = []
    for number, line_text in enumerate([*rest, ""], 1):
        item = _YAML_ITEM.match(line_text) if "-" in line_text else None
        if item and not _KEY.match(item["item"]):
            run.append((number, item["item"]))
            continue
        quiet = not line_text.strip() or line_text.strip().startswith("#")
        if quiet and run and number <= len(rest):
            continue
        if run:
            command = _from_items(run)
            if command is not None:
                found.append(command)
                for at, _ in run:
                    rest[at - 1] = ""
            run = []
    return found, rest


_MEMBER = regex(
    r"\s+|#[^\n]*|,|(?P<end>\])|[fr]?\"(?P<double>[^\"\n]{0,2000})\"|[fr]?'(?P<single>[^'\n]{0,2000})'"
    r"|str\((?P<cast>[\w.]{1,100})\)|(?P<name>[\w.]{1,100})"
)


def _python_list(text: str, at: int) -> tuple[list[str] | None, int]:
    """The strings of a Python list that begins at `at`, and its end; None when it is none.

    A variable in it stays as its name: what it holds is not known.
    """
    out: list[str] = []
    while (match := _MEMBER.match(text, at)) is not None and len(out) < 1_000:
        at = match.end()
        if match["end"]:
            return out, at
        out += [match[g] for g in ("double", "single", "cast", "name") if match[g] is not None]
    return None, at


def _from_items(run: list[tuple[int, str]]) -> Command | None:
    """A YAML list as a command, unless it is a list of something else."""
    if not any(item.lstrip("\"'").startswith("--") or "sglang" in item for _, item in run):
        return None
    command = Command([])
    for line, item in run:
        quoted = item[:1] in "\"'" and item[-1:] == item[:1] and len(item) > 1
        text = item[1:-1] if quoted else re.sub(r"\s+#.*$", "", item)
        if re.match(r"^--?[\w-]+\s+\S", text):
            command.problems.append((line, f"{text[:60]!r}: {_ONE_ITEM}"))
            words, _ = words_of(text, line)
            command.words += words
        else:
            command.words.append(Word(text, line))
    return command if command.words else None


def _logical_lines(lines: list[str], problems: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Lines joined where a command goes on: after a backslash, inside quotes, or before a line of
    flags."""
    start = 0
    parts: list[tuple[str, bool]] = []
    quote, launches = "", False
    closing = {sign: _next_with(sign, lines) for sign in "'\""}
    for number, raw in enumerate(lines, 1):
        if (not raw or raw.isspace()) and not (parts and parts[-1][1]):
            if parts:
                yield start, "\n".join(part for part, _ in parts)
                parts = []
            continue
        line = _COMPOSE.sub("", raw) if "|" in raw else raw
        if parts and lines[start - 1].startswith("> "):
            line = line.removeprefix(">")  # a quoted reply, quoted line by line
        if not parts:
            line = _unprompted(line)
        stripped = line.strip()
        goes_on = bool(parts) and parts[-1][1]
        if parts and not goes_on:
            if _FLAG.match(stripped) and any(p.strip() for p, _ in parts[:3]):
                problems.append((number, f"line {number} {_NO_BACKSLASH}"))
            else:
                yield start, "\n".join(part for part, _ in parts)
                parts = []
                line = _unprompted(raw)
                stripped = line.strip()
        if not parts:
            start = number
        if goes_on and stripped.startswith("#"):
            parts.append(("", True))
            continue
        ends = re.search(r"\\([ \t]*)$", line) if "\\" in line else None
        if ends and ends[1]:
            problems.append((number, f"line {number}: {_SPACES_AFTER}"))
        body = line[: ends.start()] + " " if ends else line
        if not parts:
            quote, launches = "", False
        quote = _open_quote(body, quote)
        launches = launches or _LAUNCHES.search(body) is not None
        # A quote of a launch that a later line closes; an apostrophe in prose opens none.
        spans = quote and launches and closing[quote][number] <= number + _QUOTED_LINES
        parts.append((body, bool(ends or spans)))
    if parts:
        yield start, "\n".join(part for part, _ in parts)


def _unprompted(line: str) -> str:
    """The line without a shell's prompt or the YAML key in front of a command."""
    if line[:1].isalnum() and not _PROMPTED.search(line):
        return line
    return _YAML_KEY.sub("", _PROMPT.sub("", line), count=1)


def _next_with(sign: str, lines: list[str]) -> list[int]:
    """By the number of a line: the number of the next line below it that holds `sign`."""
    never = len(lines) + _QUOTED_LINES + 1
    found = [never] * (len(lines) + 1)
    for number in range(len(lines) - 1, -1, -1):
        found[number] = number + 1 if sign in lines[number] else found[number + 1]
    return found


def _open_quote(text: str, quote: str) -> str:
    """The quote that is open behind `text` when `quote` was open in front of it ("" for none)."""
    if not quote and "'" not in text and '"' not in text:
        return ""
    at = 0
    while at < len(text):
        if text[at] == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if text[at] == quote else quote
        elif text[at] in "'\"":
            quote = text[at]
        at += 1
    return quote


def _arrays(lines: list[str]) -> tuple[dict[str, str], list[str]]:
    """Bash arrays by name, their words in one text, and the lines with them blanked out."""
    found: dict[str, str] = {}

    def keep(match: re.Match[str]) -> str:
        words = re.sub(r"(?m)(?:^|\s)#.*$", "", match[2])
        found[match[1]] = f"{found.get(match[1], '')} {' '.join(words.split())}".strip()
        return "\n" * match[0].count("\n")

    return found, _ARRAY.sub(keep, "\n".join(lines)).split("\n")


def _split(word: Word, variables: dict[str, str]) -> list[Word]:
    """The word expanded; one that is a variable full of flags becomes the words in it."""
    text = _expand(word.text, variables)
    if _ONLY_VARIABLE.fullmatch(word.text) and text.startswith("-") and " " in text:
        return [Word(inner.text, word.line) for inner in words_of(text, word.line)[0]]
    return [Word(text, word.line)]


def _shell(
    lines: list[str],
    problems: list[tuple[int, str]],
    arrays: dict[str, str],
    telling: re.Pattern[str] | None,
) -> list[Command]:
    found: list[Command] = []
    variables: dict[str, str] = dict(arrays)
    shared = list(problems)
    grown = 0
    logical = list(_logical_lines(lines, shared))
    shared.sort(key=lambda problem: problem[0])
    numbers = [number for number, _ in shared]
    known: dict[str, str] = dict(variables)  # what the commands since the last assignment share
    for start, text in logical:
        if not text.strip():
            continue
        if telling is not None and telling.search(text) is None:
            if not found or found[-1].words[0].text:
                found.append(Command([Word("", start)]))
            continue
        if _LONE.fullmatch(text):
            name, _, value = text.strip().partition("=")
            if len(variables) < _MAX_VARIABLES:
                variables[name] = value
                known = {}
            continue
        if "$((" in text:
            text = _SUM.sub(lambda match: re.sub(r"\s", "", match[0]), text)
        for words, odd in _simple_commands(text, start):
            expanded = [part for word in words for part in _split(word, variables)]
            grown += sum(len(word.text) for word in expanded)
            if grown > _MAX_GROWN:
                return found  # variables inside variables, or one long one again and again
            assignments = _assignments(expanded)
            if assignments is not None:
                if len(variables) < _MAX_VARIABLES:
                    variables |= assignments
                    known = {}
                continue
            known = known or dict(variables)
            last = max(word.line for word in expanded)
            command = Command(expanded, odd, known)
            command.problems += shared[bisect_left(numbers, start) : bisect_right(numbers, last)]
            found.append(command)
    return found


def _assignments(words: list[Word]) -> dict[str, str] | None:
    """The variables of a command that only sets some (`A=b`, `export A=b`), None for any other
    command."""
    texts = [word.text for word in words]
    if texts and texts[0] in ("export", "declare", "set", "setenv"):
        texts = texts[1:]
    if not texts or "=" not in texts[0]:
        return None
    pairs = [_ASSIGNED.match(text) for text in texts]
    if not all(pairs):
        return None
    return {pair[1]: pair[2] for pair in pairs if pair}


_SUM = regex(r"\$\(\(([\w\s${}+*-]{1,80})\)\)")


def _sum(match: re.Match[str], variables: dict[str, str]) -> str:
    """The value of `$((STEPS + 1))`: sums and products of whole numbers, else as it stands."""
    inner = re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", lambda m: variables.get(m[1], m[1]), match[1])
    inner = re.sub(r"\s", "", inner)
    if not re.fullmatch(r"\d{1,9}(?:[-+*]\d{1,9}){0,9}", inner):
        return match[0]
    total = 0
    for sign, term in re.findall(r"([-+]?)([\d*]+)", inner):
        product = math.prod(int(factor) for factor in term.split("*"))
        total += -product if sign == "-" else product
    return str(total)


def _expand(text: str, variables: dict[str, str]) -> str:
    if "$" not in text:
        return text
    text = _SUM.sub(lambda match: _sum(match, variables), text)

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[3]
        if name in variables:
            return variables[name]
        return match[2] if match[2] is not None else match[0]

    return _VARIABLE.sub(value, text)


def _simple_commands(text: str, line: int) -> Iterator[tuple[list[Word], list[tuple[int, str]]]]:
    words, problems = words_of(text, line)
    current: list[Word] = []
    skip_target = False
    for word in words:
        if word.text in OPERATORS and word.text.isprintable() and isinstance(word, Operator):
            if current:
                yield current, problems
                problems = []
            current, skip_target = [], False
        elif isinstance(word, Redirect):
            skip_target = not re.search(r"[&<>]\d$|&-$", word.text)
        elif skip_target:
            skip_target = False
        else:
            current.append(word)
    if current:
        yield current, problems
