"""Takes out of a document what should not leave the team: tokens, keys, passwords, user names in
paths, IP and mail addresses.

On by default for all that leaves: page, PDF, Markdown, JSON. Each thing found is listed for a
person, who may let it through. The same thing gets the same placeholder throughout, so that a
reader can still follow it. Patterns err on the side of taking too much.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

NAMES = {
    "key": "private key",
    "token": "token or key",
    "password": "password",
    "user": "user name in a path",
    "address": "IP address",
    "mail": "mail address",
}
# How long a text may be that is looked at in one piece; logs are quoted far shorter.
_PIECE = 200_000

_PEM = re.compile(r"-----(BEGIN|END) [A-Z ]{0,40}PRIVATE KEY-----")
_LONGEST_PEM = 8000
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    r"hf_[A-Za-z0-9]{16,}"
    r"|(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[abposr]-[A-Za-z0-9-]{10,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}"
    r"|nvapi-[A-Za-z0-9_-]{20,}|wandb_v1_[A-Za-z0-9_]{16,}|dckr_pat_[A-Za-z0-9_-]{16,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}"
    r")"
)
_BEARER = re.compile(r"(?i)\b(?:bearer|basic)[ \t]+([A-Za-z0-9._~+/=-]{12,})")
# A name that says that its value is secret. Counts of tokens and tokenizers are none of these.
_NAMED = (
    r"(?:api[-_]?key|access[-_]?key(?:[-_]?id)?|secret(?:[-_]?(?:access)?[-_]?key)?"
    r"|(?:auth|access|api|bearer|hf|hub|github|gitlab|session|refresh|admin|wandb|service)[-_]?token"
    r"|private[-_]?key|passw(?:or)?d|passphrase|credentials?)"
)
_ASSIGNED = re.compile(
    r"(?i)(?<![A-Za-z0-9])((?:[A-Za-z0-9]{1,40}[-_]){0,6}" + _NAMED + r")"
    r"(?:[\"']?[ \t]{0,3}[=:][ \t]{0,3}|[ \t]{1,3})"
    r"(?:\"([^\"\n]{4,400})\"|'([^'\n]{4,400})'|([^\s\"',;&]{4,400}))"
)
_SECRET_KEY = re.compile(r"(?i)(?:^|[-_.])(?:" + _NAMED + r"|token|secret)$")
_LOGIN = re.compile(r"(?<=://)([^\s/@:]{1,200}(?::[^\s/@]{0,400})?)@")
_HOME = re.compile(
    r"(?:/home/|/Users/|/export/home/|/data/home/|[A-Za-z]:\\Users\\|/private/home/)"
    r"([^/\\\s\"':,;]{1,80})"
)
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])")
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5}\b")
_PLACEHOLDER = re.compile(r"\[(?:key|token|password|user|address|mail) \d+\]")
# What stands in such places without being a secret.
_HARMLESS = re.compile(r"(?i)none|null|true|false|\*+|x+|<[^>]*>|\$\{?\w+\}?|[\d.]+|\[[^\]]*\]?")


@dataclass(slots=True)
class Redaction:
    """One thing found. key: names it without giving it away; shown: what a person is shown for
    review; where: the parts of the document it stands in; kept: a person has let it through."""

    key: str
    kind: str
    shown: str
    placeholder: str
    kept: bool = False
    count: int = 0
    where: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return NAMES[self.kind]


@dataclass
class Redactor:
    """One pass over a document; placeholders are numbered in the order of appearance."""

    kept: frozenset[str] = frozenset()
    _found: dict[tuple[str, str], Redaction] = field(default_factory=dict)
    _where: str = ""

    def document(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of plain data with every text cleaned, keys of mappings included."""
        clean = {}
        for name, part in value.items():
            self._where = str(name)
            clean[name] = self._clean(part, secret=False)
        return clean

    @property
    def found(self) -> tuple[Redaction, ...]:
        """What was found, in the order of appearance."""
        return tuple(self._found.values())

    def _clean(self, value: Any, *, secret: bool) -> Any:
        if isinstance(value, str):
            if secret and len(value) >= 4 and not _HARMLESS.fullmatch(value):
                return self._replaced("token", value)
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(str(k)): self._clean(v, secret=bool(_SECRET_KEY.search(str(k))))
                for k, v in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._clean(item, secret=secret) for item in value]
        return value

    def text(self, text: str) -> str:
        """One text without what must not leave."""
        if len(text) < 4:
            return text
        if len(text) > _PIECE:
            return "".join(self.text(piece) for piece in _pieces(text))
        if "PRIVATE KEY" in text:
            text = self._without_keys(text)
        text = _TOKEN.sub(lambda m: self._replaced("token", m[0]), text)
        text = _BEARER.sub(lambda m: self._group("token", m, 1), text)
        if "=" in text or ":" in text or " " in text:
            text = _ASSIGNED.sub(self._assigned, text)
        if "://" in text:
            text = _LOGIN.sub(lambda m: self._group("password", m, 1), text)
        if "/" in text or "\\" in text:
            text = _HOME.sub(lambda m: self._group("user", m, 1), text)
        if "@" in text:
            text = _MAIL.sub(lambda m: self._replaced("mail", m[0]), text)
        text = _IPV4.sub(self._address, text)
        return _IPV6.sub(self._address, text) if ":" in text else text

    def _without_keys(self, text: str) -> str:
        """Without private keys: from a key's first line to its last, or as far as a key reaches."""
        parts: list[str] = []
        done = 0
        begun: re.Match[str] | None = None
        for mark in _PEM.finditer(text):
            if begun is not None and mark.start() - begun.start() > _LONGEST_PEM:
                done = self._cut_key(parts, text, done, begun.start(), begun.start() + _LONGEST_PEM)
                begun = None
            if mark[1] == "BEGIN":
                begun = begun or mark
            elif begun is not None:
                done = self._cut_key(parts, text, done, begun.start(), mark.end())
                begun = None
        if begun is not None:
            end = min(begun.start() + _LONGEST_PEM, len(text))
            done = self._cut_key(parts, text, done, begun.start(), end)
        return "".join([*parts, text[done:]])

    def _cut_key(self, parts: list[str], text: str, done: int, start: int, end: int) -> int:
        parts += [text[done:start], self._replaced("key", text[start:end])]
        return end

    def _assigned(self, match: re.Match[str]) -> str:
        group = next(g for g in (2, 3, 4) if match[g] is not None)
        value = match[group]
        between = match.string[match.end(1) : match.start(group)]
        flag = re.search(r"(?:^|[\s\"'])--?[\w-]*$", _before(match, match.end(1)))
        if not between.strip("\"' \t") and not flag:
            return match[0]  # a word in a sentence, and not the flag of a command
        if _HARMLESS.fullmatch(value) or _PLACEHOLDER.search(value) or value.startswith("--"):
            return match[0]
        kind = "password" if re.search(r"(?i)pass", match[1]) else "token"
        return self._group(kind, match, group)

    def _group(self, kind: str, match: re.Match[str], group: int) -> str:
        whole, start = match[0], match.start(group) - match.start()
        value = match[group]
        if _PLACEHOLDER.fullmatch(value) or _HARMLESS.fullmatch(value):
            return whole
        return whole[:start] + self._replaced(kind, value) + whole[start + len(value) :]

    def _address(self, match: re.Match[str]) -> str:
        try:
            known = ipaddress.ip_address(match[0])
        except ValueError:
            return match[0]
        # "a::b" is a name of a program more often than an address.
        named = known.version == 6 and not re.search(r"\d", match[0])
        harmless = named or known.is_loopback or known.is_unspecified or str(known).startswith("0.")
        if harmless or _before(match, match.start()).endswith(("version ", "==", "release ")):
            return match[0]
        return self._replaced("address", match[0])

    def _replaced(self, kind: str, value: str) -> str:
        entry = self._found.get((kind, value))
        if entry is None:
            number = 1 + sum(known == kind for known, _ in self._found)
            key = hashlib.sha256(f"{kind}:{value}".encode()).hexdigest()[:16]
            shown = value if kind in ("user", "address", "mail") else _hidden(value)
            entry = Redaction(key, kind, shown, f"[{kind} {number}]", key in self.kept)
            self._found[kind, value] = entry
        entry.count += 1
        if self._where not in entry.where:
            entry.where.append(self._where)
        return value if entry.kept else entry.placeholder


def _before(match: re.Match[str], end: int) -> str:
    return match.string[max(0, end - 120) : end]


def _hidden(value: str) -> str:
    """The two ends of a secret, enough to know it again."""
    flat = " ".join(value.split())
    return f"{flat[:4]}…{flat[-2:]} ({len(value)} characters)" if len(flat) > 8 else "…"


def _pieces(text: str) -> Iterable[str]:
    """A very long text in pieces that end at white space, where there is any."""
    start = 0
    while start < len(text):
        end = min(start + _PIECE, len(text))
        if end < len(text):
            space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = space + 1 if space > start else end
        yield text[start:end]
        start = end
