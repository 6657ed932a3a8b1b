"""Server logs, whole or pasted, into a Case, with what stands beside the engine's own lines."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from specdebug.diagnosis import content, log_rows
from specdebug.diagnosis.content import Unusable
from specdebug.diagnosis.facts import Boot, Input, Stretch
from specdebug.diagnosis.gather_text import read_launches, read_release, read_runs, read_values
from specdebug.diagnosis.gathered import Gathered, counted
from specdebug.diagnosis.headed_parts import by_heading
from specdebug.diagnosis.vllm_events import life_of
from specdebug.sglang.log_line import clean, engine_free
from specdebug.sglang.recognise import announces
from specdebug.sglang.request_log import without_records

__all__ = ["read_log", "read_pasted_log", "read_vllm"]

_UNREAD = (" breaks off ", " only ", " nothing more ")  # of what follows in the log
START = 1 << 16  # a command that a start script traces stands above the first log line


def read_log(found: Gathered, given: Input) -> str:
    """A server log of any size; what a person or a client wrote around it is read too."""
    from specdebug.sglang import logs  # a check without a log starts sooner

    if isinstance(given.data, Path):
        log = logs.read_log(given.data, given.name)
    else:
        log = logs.read_log(io.BytesIO(given.data), given.name)
    small = content.small_text(given)
    if small is not None:
        small = without_records(small)  # what a user asks is nobody's word on this server
    parts = by_heading(small, given.name) if small is not None else []
    boots = parts or log_rows.boots(log, given.name)
    boots = _with_texts(_with_extra(boots, given.name, small), small)
    if not boots:
        raise Unusable("no server start, decode line or error of a known engine in it")
    found.boots += boots
    head = small or without_records(content.decoded(content.head(given)[:START]))
    start = head[:START]
    quoted = log.is_excerpt and ("peculative" in start or "step" in start)
    if "launch_server" in start or "sglang serve" in start or quoted:
        read_launches(found, given.name, start)
    elif log.is_excerpt:
        read_release(found, given.name, start)
    runs = 0 if small is None else _read_beside(found, given.name, small, log.is_excerpt)
    lines = sum(t.count for b in log.boots for t in b.decode.values())
    said = [f"{log.total_lines} lines", counted(len(boots), "start")]
    said.append(counted(lines, "decode line"))
    if log.is_excerpt:
        said.append("an excerpt without start-up lines")
    if log.unread_decode_lines:
        said.append(f"{counted(log.unread_decode_lines, 'decode line')} could not be read")
    if runs:
        said.append(counted(runs, "run"))
    broken = [why for _, why in log.problems if any(sign in why for sign in _UNREAD)]
    return "; ".join([", ".join(said), *broken])


def _read_beside(found: Gathered, name: str, text: str, is_excerpt: bool) -> int:
    """Configs, notes and benchmark figures in the same paste as log lines.

    Around an excerpt and around a whole log a person may have written anything; between the first
    and the last line of a whole log only a client's printed table is taken for one.
    """
    if text.count("\ufffd") > len(text) // 100:
        return 0
    read_values(found, name, text)
    # Blanked, not dropped: line numbers are evidence.
    lines = text.split("\n")
    own = [line if engine_free(line) else "" for line in lines]
    if not is_excerpt and "Serving Benchmark Result" not in text:
        engine = [i for i, line in enumerate(lines) if not engine_free(line)]
        for i in range(engine[0] if engine else 0, engine[-1] if engine else len(lines)):
            own[i] = ""
    return read_runs(found, name, "\n".join(own))


def _with_texts(boots: list[Boot], text: str | None) -> list[Boot]:
    """Keep the verbatim decode lines of a small log, so that evidence quotes them."""
    if text is None:
        return boots
    lines = text.split("\n")

    def texts(stretch: Stretch) -> dict[int, str]:
        return {
            n: clean(lines[n - 1]).strip()[:400]
            for n in stretch.lines
            if n <= len(lines) and "Decode batch" in lines[n - 1]
        }

    return [
        replace(b, stretches=tuple(replace(s, texts=texts(s)) for s in b.stretches)) for b in boots
    ]


def _with_extra(boots: list[Boot], name: str, text: str | None) -> list[Boot]:
    """Lines that speak of a start from outside the engine (a launcher, a scheduler, a probe)."""
    extra = log_rows.outside_notices(text, name) if text is not None else ()
    if not extra:
        return boots
    if not boots:
        return [Boot(name, 1, True, {}, (), extra)]
    known = {n.line for n in boots[-1].notices}
    more = tuple(n for n in extra if n.line not in known)
    return [*boots[:-1], replace(boots[-1], notices=(*boots[-1].notices, *more))]


def read_pasted_log(found: Gathered, name: str, text: str) -> int:
    """Decode lines inside a text that also holds other things; returns how many."""
    failed = announces(text)
    if "Decode batch" not in text and "server_args=" not in text and not failed:
        return 0
    from specdebug.sglang import logs

    read = by_heading(text, name) or log_rows.boots(logs.read_log(io.StringIO(text), name), name)
    boots = [b for b in read if b.stretches or b.effective or failed]
    found.boots += boots
    return sum(len(s) for b in boots for s in b.stretches)


def read_vllm(found: Gathered, given: Input) -> str:
    """A vLLM log: speculative lines, acceptance by position, the command above them."""
    from specdebug.sglang import vllm

    text = content.text(given)
    log = vllm.read_vllm_log(text)
    boot, positions = log_rows.vllm_boot(log, given.name)
    found.boots.append(replace(boot, notices=life_of(text, given.name)))
    if positions is not None:
        found.positions.append(positions)
    read_launches(found, given.name, text[:START])
    if len(text) <= content.HEAD:
        read_values(found, given.name, text)
        if "Serving Benchmark Result" in text:
            read_runs(found, given.name, text)
    return f"{log.total_lines} lines, {counted(len(log.spec), 'line')} on speculation"
