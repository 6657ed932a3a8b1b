"""Texts that people enter, cleaned and bounded; not how they are shown."""

from __future__ import annotations

from experiments.refusal import Refused


def needed(text: str, what: str, longest: int) -> str:
    """`text` without outer white space; refused when empty, too long or holding a zero byte."""
    clean = text.strip()
    if not clean:
        raise Refused(f"the {what} is empty; write one")
    if "\0" in clean:
        raise Refused(f"the {what} holds a zero byte")
    if len(clean) > longest:
        raise Refused(f"the {what} has {len(clean)} characters; at most {longest} are kept")
    return clean
