"""From what the readers return to the rows of a Case; no file access and no judgement."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from specdebug.diagnosis.facts import (
    Boot,
    Fact,
    Feature,
    Launch,
    Measured,
    Notice,
    Positions,
    ServerState,
    Stretch,
    Training,
)
from specdebug.sglang import meta_info, vllm
from specdebug.sglang.benches import BenchRun
from specdebug.sglang.decode_table import DecodeTable
from specdebug.sglang.flags import LaunchCommand
from specdebug.sglang.logs import ServerLog
from specdebug.sglang.meta_info import RequestAcceptance
from specdebug.sglang.metrics import Metrics
from specdebug.sglang.releases import Release
from specdebug.sglang.server_info import ServerInfo
from specdebug.sglang.vllm import VllmLog

CONDITIONAL = "P(position k accepted | position k-1 was)"


def decode(data: bytes) -> str:
    """Text of an upload: UTF-8 or UTF-16 by its byte order mark, bad bytes replaced."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def release(text: str) -> Release | None:
    """The release a person wrote, None when there is none in it."""
    return Release.find(text)


_PROSE = re.compile(r"(?i)\bsglang(?:[ :=\"'-]|\s+version\s*|==\s*)*v?(0\.\d+\.\d+(?:\.post\d+)?)")


def release_in_prose(text: str) -> str | None:
    """A release named right after the word sglang ("sglang 0.5.9", "sglang:v0.5.9")."""
    match = _PROSE.search(text)
    return match.group(1) if match else None


def launch(command: LaunchCommand, source: str) -> Launch:
    """A parsed command as rows; vLLM's speculation under SGLang's names."""
    requested = {
        dest: Fact(
            given.value,
            source,
            given.line,
            f"{given.flag_as_written} {given.raw}".strip(),
        )
        for dest, given in command.flags.items()
    }
    if command.engine == "vllm":
        line = command.line
        for dest, value in vllm.as_sglang_flags(command).items():
            requested[dest] = Fact(value, source, line, f"{dest}={value}")
    env = {k: Fact(v, source, command.line, f"{k}={v}") for k, v in command.env.items()}
    return Launch(
        source=source,
        line=command.line,
        text=" ".join(command.argv)[:400],
        engine=command.engine,
        requested=requested,
        env=env,
        problems=tuple(f"line {p.line}: {p.message}" for p in command.problems),
    )


def boots(log: ServerLog, source: str) -> list[Boot]:
    """The starts of a log that hold anything: arguments, decode lines or events."""
    out: list[Boot] = []
    for boot in log.boots:
        line = boot.server_args_line
        effective = {
            key: Fact(value, source, line, f"{key}={value!r}"[:200])
            for key, value in (boot.server_args or {}).items()
        }
        notices = [
            Notice("argument-warning", source, w.line, w.text, {"rule": w.rule or ""})
            for w in boot.argument_warnings
        ]
        notices += [
            Notice("model-load", source, m.line, m.text, {"type": m.model_type}, m.rank)
            for m in boot.model_loads
        ]
        notices += [
            Notice(e.kind, source, e.line, e.text, dict(e.fields), e.rank) for e in boot.events
        ]
        stretches = tuple(stretch(table) for table in boot.decode.values() if table.count)
        if not (effective or notices or stretches):
            continue
        low, high = boot.release_between
        out.append(
            Boot(
                source=source,
                line=boot.start_line,
                excerpt=boot.server_args is None,
                effective=effective,
                stretches=stretches,
                notices=tuple(sorted(notices, key=lambda n: n.line or 0)),
                release=str(boot.release) if boot.release else None,
                release_from=str(low) if low else None,
                release_until=str(high) if high else None,
                ready=boot.first("ready") is not None,
            )
        )
    return out


def stretch(table: DecodeTable) -> Stretch:
    """The kept decode lines of one rank as plain columns."""
    graph = [-1 if math.isnan(g) else int(g) for g in table["graph"].tolist()]
    return Stretch(
        rank=table.rank,
        lines=table.lines.tolist(),
        running=_zeros(table["running"].tolist()),
        queue=_zeros(table["queue"].tolist()),
        tokens=table["tokens"].tolist(),
        accept_len=table["accept_len"].tolist(),
        accept_rate=table["accept_rate"].tolist(),
        graph=graph,
        throughput=_zeros(table["throughput"].tolist()),
    )


def _zeros(values: list[float]) -> list[float]:
    return [0.0 if math.isnan(v) else v for v in values]


def vllm_boot(log: VllmLog, source: str) -> tuple[Boot, Positions | None]:
    """A vLLM log as one start; running and throughput come from the nearest line before."""
    lines: list[int] = []
    columns: dict[str, list[float]] = {"running": [], "queue": [], "len": [], "tok_s": []}
    for spec in log.spec:
        near = [t for t in log.throughput if t.line <= spec.line] or list(log.throughput)
        last = near[-1] if near else None
        lines.append(spec.line)
        columns["len"].append(spec.accept_len)
        columns["running"].append(float((last.running if last else None) or 1))
        columns["queue"].append(float((last.waiting if last else None) or 0))
        columns["tok_s"].append(last.generation_tok_s if last else 0.0)
    nan = [math.nan] * len(lines)
    stretches = (
        (
            Stretch(
                "",
                lines,
                columns["running"],
                columns["queue"],
                nan,
                columns["len"],
                list(nan),
                [-1] * len(lines),
                columns["tok_s"],
            ),
        )
        if lines
        else ()
    )
    return Boot(source, 1, True, {}, stretches, (), log.version, engine="vllm"), _vllm_positions(
        log, source
    )


def _vllm_positions(log: VllmLog, source: str) -> Positions | None:
    rows = [s for s in log.spec if s.per_position and s.drafted]
    if not rows:
        return None
    depth = max(len(s.per_position) for s in rows)
    accepted = [0.0] * depth
    drafts = 0.0
    for row in rows:
        count = (row.drafted or 0) / len(row.per_position)
        drafts += count
        for k, rate in enumerate(row.per_position):
            accepted[k] += rate * count
    if drafts <= 0:
        return None
    unconditional = tuple(a / drafts for a in accepted)
    return Positions(
        source,
        rows[0].line,
        rows[0].text,
        vllm.conditional(unconditional),
        round(drafts),
        f"{CONDITIONAL}, from the logged per-position rates weighted by drafts",
        depth,
        1 + sum(unconditional),
    )


def positions(
    requests: Iterable[RequestAcceptance], source: str, *, loops: bool = False
) -> Positions:
    """Per-request answers pooled; the accept length is the first the reader names.

    loops: the text of an answer repeats itself.
    """
    rows = list(requests)
    pooled = meta_info.pool(rows)
    proposed = [r for r in rows if r.proposed and r.verify_ct]
    steps = (
        round(sum(r.proposed or 0 for r in proposed) / sum(r.verify_ct for r in proposed))
        if proposed
        else None
    )
    named = "; ".join(
        f"{name} {value.value:.3f} ({value.formula})" for name, value in pooled.lengths.items()
    )
    lengths = list(pooled.lengths.values())
    conditional = pooled.conditional if steps is None else pooled.conditional[:steps]
    return Positions(
        source,
        None,
        f"{pooled.requests} requests, {pooled.verifies} verifications, histogram "
        f"{list(pooled.histogram)}; {named}"[:400],
        tuple(conditional),
        pooled.verifies,
        f"{CONDITIONAL}, from the summed histograms",
        steps,
        lengths[0].value if lengths else None,
        loops or any(one_token_repeats(r.output_ids or ()) for r in rows),
    )


_TEXT = re.compile(r'"(?:text|generated_text|content)"\s*:\s*"((?:[^"\\]|\\.)*)"')


def looping_text(text: str, least: int = 32) -> bool:
    """Whether an answer's text in raw JSON ends in `least` words of at most two kinds."""
    for match in _TEXT.finditer(text[: 1 << 22]):
        words = match.group(1).split()
        if len(words) >= least and len(set(words[-least:])) <= 2:
            return True
    return False


# What launchers, schedulers and drivers print around the engine; the engine's own events are read
# in sglang/log_events.py.
_OUTSIDE = re.compile(
    r"(?i)startup probe failed|timed out waiting for|timeout waiting for|did not become ready"
    r"|not ready (?:after|within)|failed to start within|start(?:ing|-up)? timed out"
    r"|memory capacity is unbalanced|occupied by other processes|busy or unavailable"
    r"|device\(s\) is/are busy"
)


def outside_notices(text: str, source: str) -> tuple[Notice, ...]:
    """Lines about a start that is late or a GPU that is not free, with their numbers."""
    return tuple(
        Notice("outside", source, number, line.strip()[:500])
        for number, line in enumerate(text.splitlines(), start=1)
        if _OUTSIDE.search(line) and "server_args=" not in line
    )


def one_token_repeats(ids: tuple[int, ...], least: int = 32) -> bool:
    """Whether the last `least` tokens of an output are a loop of at most two tokens."""
    return len(ids) >= least and len(set(ids[-least:])) <= 2


def state(info: ServerInfo, source: str) -> ServerState:
    """Effective arguments and averages of a running server."""
    effective = {k: Fact(v, source, None, f"{k}={v!r}"[:200]) for k, v in info.args.items()}
    lengths = [r.avg_accept_len for r in info.ranks if r.avg_accept_len]
    limits = [r.max_running for r in info.ranks if r.max_running]
    return ServerState(
        source,
        effective,
        str(info.release) if info.release else None,
        Fact(lengths[0], source, None, f"avg_spec_accept_length: {lengths[0]:.4g}")
        if lengths
        else None,
        Fact(limits[0], source, None, f"effective_max_running_requests_per_dp: {limits[0]}")
        if limits
        else None,
    )


def measured(run: BenchRun, source: str) -> Measured:
    """One benchmark row. A row without accept length and steps is plain only if it says so."""
    args = run.server_info.args if run.server_info else {}
    speculative: bool | None = None
    if run.is_baseline is not None:
        speculative = not run.is_baseline
    elif args:
        speculative = args.get("speculative_algorithm") is not None
    elif run.accept_len is not None or run.num_steps:
        speculative = True
    running = run.concurrency or run.batch_size or run.max_concurrency

    def arg(name: str, own: int | None) -> int | None:
        value = own if own is not None else args.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    told = _label_numbers(run.label or "") if speculative is not False else {}

    return Measured(
        label=run.label or f"{PurePath(source).name} line {run.line}",
        source=source,
        line=run.line,
        text=_row_text(run),
        speculative=speculative,
        num_steps=arg("speculative_num_steps", run.num_steps or told.get("steps")),
        topk=arg("speculative_eagle_topk", run.topk or told.get("topk")),
        draft_tokens_asked=run.requested_draft_tokens or told.get("draft"),
        draft_tokens=arg("speculative_num_draft_tokens", run.draft_tokens),
        tok_s=(run.output_tok_s,) if run.output_tok_s else (),
        accept_len=run.accept_len,
        accept_rate=run.accept_rate,
        running=float(running) if running else None,
        concurrency=float(run.max_concurrency) if run.max_concurrency else None,
        drafts=_drafts(run),
        counted_by="chunks?" if run.kind == "client-report" else "client",
        dataset=run.dataset,
        ignore_eos=run.ignore_eos,
        step_ms=run.step_ms,
        workload=run.kind,
    )


_IN_LABEL = {
    "steps": re.compile(r"(?i)(?:num[_ -]?)?steps?\s*[=: ]\s*(\d{1,3})\b|\b(\d{1,3}) steps?\b"),
    "topk": re.compile(r"(?i)top[_-]?k\s*[=: ]\s*(\d{1,3})\b"),
    "draft": re.compile(r"(?i)draft(?:[_ -]?tokens?)?\s*[=: ]\s*(\d{1,3})\b"),
}


def _label_numbers(label: str) -> dict[str, int]:
    """Numbers a row's own name carries ("EAGLE3 steps=3 topk=1 draft=4")."""
    found: dict[str, int] = {}
    for key, pattern in _IN_LABEL.items():
        match = pattern.search(label)
        if match:
            found[key] = int(next(g for g in match.groups() if g))
    return found


def _row_text(run: BenchRun) -> str:
    parts = [
        ("num_steps", run.num_steps),
        ("topk", run.topk),
        ("draft tokens", run.requested_draft_tokens or run.draft_tokens),
        ("output tok/s", run.output_tok_s),
        ("accept length", run.accept_len),
        ("max concurrency", run.max_concurrency),
    ]
    said = ", ".join(f"{name} {value:g}" for name, value in parts if value is not None)
    return f"{run.label}: {said}" if run.label else said


def _drafts(run: BenchRun) -> int | None:
    if run.output_tokens and run.accept_len:
        return round(run.output_tokens / run.accept_len)
    return None


def positions_of_run(run: BenchRun, source: str) -> Positions | None:
    """Per-position acceptance a benchmark printed (vllm bench serve), unconditional there."""
    rates = run.extra.get("per_position") or run.extra.get("per_position_acceptance")
    if not isinstance(rates, list | tuple) or not rates:
        return None
    values = tuple(float(r) for r in rates)
    if max(values) > 1:
        values = tuple(v / 100 for v in values)
    drafts = run.extra.get("drafts")
    return Positions(
        source,
        run.line,
        f"per-position acceptance {list(rates)}",
        vllm.conditional(values),
        int(drafts) if isinstance(drafts, int | float) else 0,
        f"{CONDITIONAL}, from the printed per-position rates",
        len(values),
        run.accept_len,
    )


def bench_flags(run: BenchRun, source: str) -> dict[str, Fact]:
    """What a benchmark's own command line says about its prompts and concurrency."""
    told: dict[str, Any] = {"dataset_name": run.dataset, "max_concurrency": run.max_concurrency}
    if run.ignore_eos is not None:
        told["ignore_eos"] = run.ignore_eos
    return {
        key: Fact(value, source, run.line, f"{key.replace('_', '-')} {value}")
        for key, value in told.items()
        if value is not None
    }


def scrape(found: Metrics, source: str) -> tuple[Measured | None, Positions | None]:
    """Gauges of SGLang, or counters of vLLM."""
    counts = vllm.counters(found)
    if counts is not None and counts.drafts:
        rates = tuple(p / counts.drafts for p in counts.per_position)
        text = f"{counts.drafts:g} drafts, {counts.accepted:g} of {counts.drafted:g} accepted"
        return None, Positions(
            source,
            None,
            text,
            vllm.conditional(rates),
            int(counts.drafts),
            f"{CONDITIONAL}, from counters since start",
            len(rates) or None,
            counts.accept_len,
        )
    length = found.get("spec_accept_length")
    tok_s = found.get("gen_throughput")
    if not length:
        return None, None
    return (
        Measured(
            label="/metrics",
            source=source,
            text=f"spec_accept_length {length:g}",
            speculative=True,
            tok_s=(tok_s,) if tok_s else (),
            accept_len=length,
            accept_rate=found.get("spec_accept_rate"),
            running=found.get("num_running_reqs") or None,
            counted_by="server",
            workload="gauge",
        ),
        None,
    )


def training(value: object, source: str) -> tuple[Training | None, str | None]:
    """Training notes, and what is wrong with them. Accuracy above 1 is read as per cent."""
    if value is None:
        return None, None
    if not isinstance(value, Mapping):
        return None, f"training must be an object, not {json.dumps(value)[:60]}"
    accuracy, problem = value.get("val_accuracy"), None
    if isinstance(accuracy, int | float) and not isinstance(accuracy, bool):
        accuracy = accuracy / 100 if 1 < accuracy <= 100 else accuracy
        if not 0 < accuracy < 1:
            accuracy, problem = None, f"training.val_accuracy {accuracy} is no fraction"
    elif accuracy is not None:
        accuracy, problem = None, "training.val_accuracy is no number"
    features = value.get("features")
    kept: tuple[Feature, ...] | None = None
    if isinstance(features, list | tuple) and features:
        if all(f == "embed" or (isinstance(f, int) and f >= 0) for f in features):
            kept = tuple("embed" if f == "embed" else int(f) for f in features)
        else:
            problem = f'training.features {features} may hold "embed" and layer numbers only'
    samples = value.get("samples")
    return (
        Training(source, accuracy, kept, samples if isinstance(samples, int) else None),
        problem,
    )
