"""What the name of a run tells: plain or drafting, its draft arguments; it reads no figures.

A run's name is a row's label, a column's title, a clause of a sentence or the heading above lines.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from specdebug.sglang.patterns import regex

Side = Literal["plain", "drafting"]

# Speculation by the names of its methods; "draft tokens" and the like are arguments, not names.
_METHOD = (
    r"(?:spec(?:ulat\w*|[-_ ]?dec\w*)?|spekul\w*|eagle(?:[-_ ]?\d)?|draft\w*|mtp|nextn"
    r"|d-?flash|dspark|medusa|n-?gram|lookahead)"
)
_OFF = r"(?:off|disabled|unused|not used|removed)(?![\w.])"
_SWITCHING_OFF = r"(?:disabl|remov|dropp)\w*|(?:turn|switch)\w* off"
_SWITCHING_ON = (
    r"(?:(?:we )?(?:enabl|add|us|turn|switch|introduc)\w*(?: on| to)?|going to|moving to)"
)
# What is no draft itself: "before the EAGLE3 fix" is a run with a draft that was not yet mended.
_CHANGED = (
    r"(?!\w| ?(?:fix|patch|change|upgrade|update|tuning|training|retrain|v\d|head|model|commit))"
)
_PLAIN_NAME = regex(
    r"(?i)(?<![a-z])(?:no|not|non|without|w/o|ohne|sans)[ _-]{0,2}"
    r"(?:(?:the|any|an?|our|using)[ _])?"
    rf"{_METHOD}(?![a-z])"
    rf"|(?<![a-z])(?:{_SWITCHING_OFF}) (?:the )?{_METHOD}(?![a-z])"
    rf"|(?<![a-z]){_METHOD}[\w-]*[ _]?[:=(]?\s*(?:is |was |turned |switched )?{_OFF}"
    rf"|(?<![a-z]){_METHOD}[\w-]*\s*[:=]\s*(?:false|no|none|0)(?![\w.])"
    rf"|(?<![a-z])(?:before|prior to|pre-?) ?(?:{_SWITCHING_ON} )?(?:the )?{_METHOD}{_CHANGED}"
    r"|(?<![a-z])(?:baseline|vanilla|plain|autoregressive|target[- ]only)(?![a-z])"
    r"|(?<![a-z])(?:normal|regular|standard|ordinary) decod"
    r"|(?<![a-z0-9])R0(?![a-z0-9])"
    # The same in Chinese: no draft, draft switched off, baseline, one token after another.
    r"|(?:不开启?|未开启?|没开|不启用|未启用|不用|未用|不使用|未使用|不带|没有|关闭|关掉|禁用|去掉|无|非|关)了?\s*"
    rf"(?:{_METHOD}(?![a-z])|投机|推测|草稿)\w{{0,2}}"
    rf"|(?:{_METHOD}|(?:投机|推测)(?:解码|采样|推理)?)\s*[:：=(（]?\s*(?:已?关闭?|未开启?|禁用)"
    r"|基线|基准(?!测试)|自回归|普通解码"
)
_DRAFTING_NAME = regex(rf"(?i)(?<![a-z]){_METHOD}(?![a-z])|投机|推测|草稿")
# Words that set two runs against each other: a name with one of them is no run's.
_BOTH = regex(
    r"(?i)(?<![a-z])(?:than|vs\.?|versus|against|compared)(?![a-z])"
    r"|(?<![a-z])(?:with|w/)\s*(?:and|or|/|&|,)|(?:and|or|/|&)\s*(?:with|w/)(?![a-z/])"
    r"|(?<![a-z])before\s*(?:/|and|or|&)\s*after(?![a-z])"
    r"|(?<![a-z])on\s*(?:/|and|or|to|->)\s*off(?![a-z])|(?<![a-z])off\s*(?:/|and|or|to|->)\s*on(?![a-z])"
    r"|对比|相比"
)


def is_baseline(label: str) -> bool:
    """Whether a label names a run without speculation."""
    return _PLAIN_NAME.search(label) is not None


def side_of(name: str) -> Side | None:
    """The side that a column's title or a heading names; None where it names both or neither."""
    if _BOTH.search(name):
        return None
    rest = _PLAIN_NAME.sub(" ", name)
    if rest == name:
        return "drafting" if _DRAFTING_NAME.search(name) else None
    return None if _DRAFTING_NAME.search(rest) or _BOTH.search(rest) else "plain"


def speaks_of_drafts(text: str) -> bool:
    """Whether some method of speculation is named, on or off."""
    return _DRAFTING_NAME.search(text) is not None


# Words that name a side only beside speculation: "off" may be off of anything.
_BARE: dict[str, Side] = {
    **dict.fromkeys(("off", "disabled", "before", "without", "w/o", "no", "base", "none"), "plain"),
    **dict.fromkeys(("原始", "关", "关闭", "未开启", "之前", "不开"), "plain"),
    **dict.fromkeys(("on", "enabled", "after", "with", "w/", "yes"), "drafting"),
    **dict.fromkeys(("开", "开启", "启用", "之后"), "drafting"),
}


def bare_side(word: str) -> Side | None:
    """The side of "off", "before", "with" and the like, where it is known what was switched."""
    return _BARE.get(word.strip().lower())


_IN_LABEL: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (field, regex(pattern, re.IGNORECASE))
    for field, pattern in (
        (
            "num_steps",
            (
                r"(?:num[_ -]?)?steps?\s*(?:[=:_-]|to|of|is)?\s*(\d{1,3})\b"
                # "EAGLE-3 steps=5" has five of them.
                r"|(?<!eagle[ -])\b(\d{1,3})[ -]steps?\b(?!\s*[=:]?\s*\d)"
            ),
        ),
        ("topk", r"top[_ -]?k\s*[=:_-]?\s*(\d{1,3})\b"),
        (
            "requested_draft_tokens",
            r"draft(?:[_ -]?tokens?)?\s*[=:_-]?\s*(\d{1,3})\b|\b(\d{1,3}) draft[_ -]tokens?\b",
        ),
        (
            "accept_len",
            r"\bacc(?:ept\w*)?[ _-]?len(?:gth)?\s*(?:[=:~\u2248]|of|is)*\s*(\d+(?:[.,]\d+)?)\b",
        ),
    )
)
SPECULATIVE = regex(
    r"(?i)\b(?:with|w/) ?(?:spec|draft|eagle|mtp)|\beagle|\bspeculat|\bmtp\b|\bnextn\b|投机|推测"
)


def told_by_label(label: str) -> dict[str, Any]:
    """Fields of BenchRun that a run's own name carries ("EAGLE3 steps=3 topk=1 draft=4").

    `is_baseline` is False where the name speaks of speculation; a baseline's name carries nothing.
    """
    if is_baseline(label):
        return {}
    found: dict[str, Any] = {"is_baseline": False} if SPECULATIVE.search(label) else {}
    for field, pattern in _IN_LABEL:
        if match := pattern.search(label):
            figure = next(group for group in match.groups() if group)
            found[field] = float(figure.replace(",", ".")) if field == "accept_len" else int(figure)
    return found
