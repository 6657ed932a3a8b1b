"""Checks of the server's life: what its log says when it could not start, or stopped."""

from __future__ import annotations

import re
from datetime import datetime

from specdebug.diagnosis.facts import Boot, Case, Notice
from specdebug.diagnosis.findings import Evidence, Finding, Severity
from specdebug.sglang.patterns import regex

_BUSY = regex(
    r"(?i)memory capacity is unbalanced|GPUs? may be occupied by other processes"
    r"|device\(s\) is/are busy|busy or unavailable|exclusive process mode"
    # The allocator lists who holds memory. Within a container it does not know itself in that list,
    # so that only a line that names this process too tells of another; a GiB or more disturbs.
    r"|^(?=.*\bthis process has\b).*\bProcess \d+ has [1-9]\d*(?:\.\d+)? GiB memory in use"
)
_TIMEOUT = regex(
    r"(?i)(did not become ready|not ready (after|within)|start(ing|-up)? timed out"
    r"|failed to start within|initialization timed out|server start timeout"
    r"|startup probe failed|time(d )?out waiting for)"
)
_MEMORY = regex(r"(?i)out of memory|OutOfMemoryError|Not enough memory")
_PORT = regex(r"(?i)address already in use|port \d+ is (already )?(in use|not available)")
_MODEL = regex(
    r"(?i)is not a local folder|Repository Not Found|RepositoryNotFoundError|no such file.*config"
    r"|does not appear to have a file named|FileNotFoundError.*(model|config|safetensors)"
    r"|Can't load the configuration|HFValidationError"
)


def _notices(case: Case, *kinds: str, pattern: re.Pattern[str] | None = None) -> list[Notice]:
    found = []
    for boot in case.boots:
        for notice in boot.notices:
            if notice.kind in ("argument-warning", "model-load"):
                continue
            if notice.kind in kinds or (pattern is not None and pattern.search(notice.text)):
                found.append(notice)
    return found


def _said(notice: Notice) -> str:
    """The telling line of a notice: the last one of a traceback, else the first."""
    lines = [line.strip() for line in notice.text.splitlines() if line.strip()]
    if not lines:
        return ""
    telling = lines[-1] if "Traceback" in notice.text else lines[0]
    return telling[:160]


def _finding(
    code: str, severity: Severity, notices: list[Notice], lead: str, fix: str
) -> Finding | None:
    if not notices:
        return None
    first = notices[0]
    count = f" ({len(notices)} such lines)" if len(notices) > 1 else ""
    return Finding(
        code,
        severity,
        "certain",
        f"{lead}{count}: {_said(first)}",
        tuple(Evidence(n.source, n.line, _said(n)) for n in notices[:3]),
        fix,
    )


def out_of_memory(case: Case) -> Finding | None:
    """The log says that memory ran out."""
    return _finding(
        "out-of-memory",
        "critical",
        _notices(case, "out-of-memory", pattern=_MEMORY),
        "The server ran out of memory",
        "Lower --mem-fraction-static, --cuda-graph-max-bs or --max-running-requests; the draft and "
        "its graphs need room too.",
    )


# What a clean stop prints too.
_CLEAN_EXIT = {"0", "-9", "-15", "137", "143"}


def _deaths(boot: Boot) -> list[Notice]:
    """The notices that say that the server, a rank or a child failed.

    A bare traceback counts only where the server never served: a running one prints them too.
    """
    served = boot.ready or bool(boot.stretches)
    found = []
    for notice in boot.notices:
        code = notice.fields.get("exit_code")
        if notice.kind == "child-died" and code in _CLEAN_EXIT:
            continue
        scheduler = notice.kind == "exception" and (
            "where" in notice.fields or "hit an exception" in notice.text
        )
        bare = (
            notice.kind in ("exception", "error-message")
            and not served
            and not _TIMEOUT.search(notice.text)
        )
        if notice.kind in ("child-died", "warmup-failed") or scheduler or bare:
            found.append(notice)
    return found


_EXCEPTIONS = ("exception", "error-message", "aux-capture", "missing-model")


def _after_death(boot: Boot, first: Notice) -> str:
    """Where to look for the cause: at an exception, at what is said above, outside of the log."""
    if any(n.kind in _EXCEPTIONS for n in boot.notices):
        return "Read the first exception of the log: later lines are its consequences."
    above = [n for n in boot.notices if n.kind in ("watchdog", "out-of-memory", "port-in-use")]
    for n in above:
        if n.line is not None and n.line < (first.line or 0):
            return f"It followed the {n.kind} at {n.source}:{n.line}: that comes first."
    return (
        "The log holds no exception: read the standard error of the process, and the system's log "
        "of that time."
    )


def server_died(case: Case) -> Finding | None:
    """An exception, a dead rank or a failed child; exit code -9 alone is none of them."""
    for boot in case.boots:
        deaths = _deaths(boot)
        if not deaths:
            continue
        first = deaths[0]
        # The exception's own words stand at the end of its traceback, some lines further down.
        last = next(
            (
                n
                for n in boot.notices
                if n.kind in ("error-message", "aux-capture", "out-of-memory", "missing-model")
                and (n.line or 0) > (first.line or 0)
            ),
            None,
        )
        said = _said(last if last is not None else first)
        return Finding(
            "server-died",
            "critical",
            "certain",
            f"The server died: {said}",
            tuple(
                Evidence(n.source, n.line, _said(n))
                for n in ([first, last] if last is not None else deaths[:2])
                if n is not None
            ),
            _after_death(boot, first),
        )
    code = case.exit_code
    if code is not None and str(code) not in _CLEAN_EXIT:
        return Finding(
            "server-died",
            "critical",
            "likely",
            f"The server process ended with exit code {code}.",
            (Evidence("process", None, f"exit code {code}"),),
            "Read the last lines of its log and its standard error.",
            "the log of the process to its end",
        )
    return None


LONG_START = 600.0  # seconds; loading and capturing a large model may well take as long
_STAMP = regex(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)")


def start_timeout(case: Case) -> Finding | None:
    """Somebody waited for the ready line in vain, or the log shows a long start without one."""
    waited = _notices(case, "start-timeout", pattern=_TIMEOUT)
    if waited:
        return _finding(
            "start-timeout",
            "high",
            waited,
            "The server was not ready in time",
            "Allow tens of minutes for large models, and look at the last phase in the log.",
        )
    boot = unfinished_start(case)
    if boot is None:
        return None
    stamped = [(n, t) for n in boot.notices if (t := _time(n.text)) is not None]
    took = (stamped[-1][1] - stamped[0][1]).total_seconds() if stamped else 0.0
    if took < LONG_START:
        return None
    first, last = stamped[0][0], stamped[-1][0]
    return Finding(
        "start-timeout",
        "medium",
        "possible",
        f"The log shows {took / 60:.0f} minutes of start-up and no ready line: still loading or "
        "capturing graphs, hanging, or stopped by whoever waited.",
        (
            Evidence(first.source, first.line, _said(first)),
            Evidence(last.source, last.line, _said(last)),
        ),
        "Look at the last phase in the log and whether its progress moves; large models take tens "
        "of minutes.",
        "the log to its end, and what the process that started the server said",
    )


def _time(text: str) -> datetime | None:
    """The time stamp of a log line, None where it has none."""
    match = _STAMP.search(text[:200])
    try:
        return datetime.fromisoformat(f"{match[1]}T{match[2]}") if match else None
    except ValueError:
        return None


def unfinished_start(case: Case) -> Boot | None:
    """A start whose log ends before the ready line, without an error: cut off, or still going."""
    for boot in case.boots:
        if boot.excerpt or boot.ready or boot.stretches:
            continue
        kinds = {n.kind for n in boot.notices}
        if not kinds & {"exception", "child-died", "out-of-memory", "port-in-use", "missing-model"}:
            return boot
    return None


def watchdog(case: Case) -> Finding | None:
    """The watchdog fired."""
    return _finding(
        "watchdog",
        "critical",
        _notices(case, "watchdog"),
        "The watchdog fired",
        "Look for the rank that hangs (a collective, a kernel); raise --watchdog-timeout only if "
        "steps are known to be that slow.",
    )


def requests_retracted(case: Case) -> Finding | None:
    """The KV cache was full and running requests were pushed out."""
    return _finding(
        "requests-retracted",
        "medium",
        _notices(case, "retracted"),
        "Requests were retracted because the KV cache was full",
        "Lower the load, or give the KV cache more room (--mem-fraction-static); leave that "
        "stretch out of comparisons.",
    )


def port_in_use(case: Case) -> Finding | None:
    """Another process has the port."""
    return _finding(
        "port-in-use",
        "critical",
        _notices(case, "port-in-use", pattern=_PORT),
        "The port is taken",
        "Stop the process that has the port, or choose another with --port.",
    )


def gpu_busy(case: Case) -> Finding | None:
    """Another process uses the GPU."""
    return _finding(
        "gpu-busy",
        "high",
        _notices(case, pattern=_BUSY),
        "The GPU was not free",
        "Stop the other process; figures taken beside it do not compare.",
    )


def missing_model(case: Case) -> Finding | None:
    """The target or the draft could not be found."""
    return _finding(
        "missing-model",
        "critical",
        _notices(case, "missing-model", pattern=_MODEL),
        "A model could not be found",
        "Check --model-path and --speculative-draft-model-path on the machine of the server.",
    )
