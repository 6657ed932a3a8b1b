"""The words, operators and redirections of shell text, with lines; expands and runs nothing."""

from __future__ import annotations

from dataclasses import dataclass

from specdebug.sglang.patterns import regex

OPERATORS = ("&&", "||", ";;", "|&", "|", ";", "&")
_REDIRECT = regex(r"(?:\d*|&)(?:>>|>\||>&|<<<|<<-?|<&|<>|>|<)")
_DESCRIPTOR = regex(r"\d+|-")
# Letters that mean themselves, taken at once: at the start of a word, and further on in it.
_PLAIN = regex(r"[^ \t\n'\"\\#&|;<>\d][^ \t\n'\"\\&|;<>]*")
_FURTHER = regex(r"[^ \t\n'\"\\&|;<>]+")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command and the 1-based line it starts on."""

    text: str
    line: int


class Operator(Word):
    """An operator that ends a simple command."""


class Redirect(Word):
    """A redirection; unless it names a descriptor, the next word is its target."""


def words_of(text: str, line: int) -> tuple[list[Word], list[tuple[int, str]]]:
    """Shell words of `text` with operators and redirections marked; an unclosed quote ends with its
    line."""
    words: list[Word] = []
    problems: list[tuple[int, str]] = []
    buffer: list[str] = []
    started: int | None = None
    at, size = 0, len(text)

    def close() -> None:
        nonlocal started
        if started is not None:
            words.append(Word("".join(buffer), started))
            buffer.clear()
            started = None

    while at < size:
        char = text[at]
        if char in " \t\n":
            close()
            line += char == "\n"
            at += 1
        elif plain := (_PLAIN if started is None else _FURTHER).match(text, at):
            started = started if started is not None else line
            buffer.append(plain[0])
            at = plain.end()
        elif char == "#" and started is None:
            end = text.find("\n", at)
            at = size if end < 0 else end
        elif char in "'\"":
            started = started if started is not None else line
            closed, value = _quoted(text, at)
            end = closed if closed is not None else size
            if closed is None:
                problems.append(
                    (line, f"line {line}: a {char} is never closed; read up to the end of the line")
                )
                stop = text.find("\n", at)
                end = size if stop < 0 else stop
                value = text[at + 1 : end]
            buffer.append(value)
            line += text.count("\n", at, end)
            at = end
        elif char == "\\" and at + 1 < size:
            started = started if started is not None else line
            if text[at + 1] != "\n":
                buffer.append(text[at + 1])
            else:
                line += 1
            at += 2
        elif (redirect := _REDIRECT.match(text, at)) and (
            started is None or not redirect[0][0].isdigit()
        ):
            close()
            end = redirect.end()
            tail = _DESCRIPTOR.match(text, end) if redirect[0].endswith("&") else None
            end = tail.end() if tail else end
            words.append(Redirect(text[at:end], line))
            at = end
        elif operator := next((op for op in OPERATORS if text.startswith(op, at)), None):
            close()
            words.append(Operator(operator, line))
            at += len(operator)
        else:
            started = started if started is not None else line
            buffer.append(char)
            at += 1
    close()
    return words, problems


def _quoted(text: str, at: int) -> tuple[int | None, str]:
    """The end (past the closing quote) and value of the quoted part starting at `at`; end None if
    unclosed."""
    quote = text[at]
    if quote == "'":
        end = text.find("'", at + 1)
        return (None, "") if end < 0 else (end + 1, text[at + 1 : end])
    parts: list[str] = []
    at += 1
    while at < len(text):
        char = text[at]
        if char == '"':
            return at + 1, "".join(parts)
        if char == "\\" and at + 1 < len(text) and text[at + 1] in '"\\$`\n':
            if text[at + 1] != "\n":
                parts.append(text[at + 1])
            at += 2
            continue
        parts.append(char)
        at += 1
    return None, ""
