"""The engine's record of a request (--log-requests): where it stands on a line.

What a record quotes is a user's text or the model's answer, and no statement of the engine.
"""

from __future__ import annotations

import re

__all__ = ["RECORD", "own", "own_text", "without_records"]

RECORD = b"Receive: obj="
# The wheels 0.4.3.post2 to 0.5.23 print "Receive: obj=" and "Finish: obj=" (tokenizer_manager.py,
# later request_logger.py), 0.5.10 adds "Receive OpenAI: obj=" and --log-requests-format json, whose
# events are request.received, request.received.openai and request.finished. Prompts stand in them
# as Python or JSON literals, with their line ends escaped: a record never goes on in another line.
# A log collector may have wrapped the JSON into its own and escaped its quotes.
_TEXT = re.compile(rb"(?:Receive(?: OpenAI)?|Finish): obj=")
_JSON = re.compile(rb'\\*"event\\*"\s*:\s*\\*"request\.(?:received|finished)')
_ITS_TIME = re.compile(rb"\[\d{4}-[^\[\]]{0,60}\]\s*$")


def own(line: bytes) -> bytes:
    """The part of a line in front of a record; the line itself where it holds none.

    What stands behind a record cannot be told from what it quotes.
    """
    at = len(line)
    if b": obj=" in line and (match := _TEXT.search(line)):
        at = match.start()
    if b"request." in line and (match := _JSON.search(line, 0, at)):
        opened = line.find(b"{", 0, match.start())
        at = opened if opened >= 0 else match.start()
    return line if at == len(line) else _ITS_TIME.sub(b"", line[:at])


def own_text(line: str) -> str:
    """`own` of a line that is decoded already."""
    if ": obj=" not in line and "request." not in line:
        return line
    return own(line.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def without_records(text: str) -> str:
    """A text with its records blanked; the lines keep their numbers, which are evidence."""
    if ": obj=" not in text and "request." not in text:
        return text
    return "\n".join(map(own_text, text.split("\n")))
