"""Benchmark output in its many shapes, as rows with units; draws no conclusion from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from specdebug.sglang import bench_prose, bench_tables, printed_tables, server_info, shell
from specdebug.sglang.bench_titles import WHOLE, Found
from specdebug.sglang.key_columns import Keys, said, same_keys
from specdebug.sglang.pasted import as_text, json_values, number, whole
from specdebug.sglang.patterns import regex
from specdebug.sglang.run_names import is_baseline, told_by_label
from specdebug.sglang.server_info import ServerInfo

BenchKind = Literal[
    "bench-serving-jsonl",
    "bench-serving-table",
    "bench-serving-command",
    "bench-one-batch",
    "bench-speculative",
    "vllm-bench",
    "table",
    "client-report",
]


@dataclass(frozen=True)
class BenchRun:
    """One benchmark run or one row of a table.

    Throughputs are tokens per second, latencies milliseconds, `duration_s` seconds, rates
    fractions. `accept_len` includes the bonus token. `requested_draft_tokens` is what the row says;
    `draft_tokens` what is really in force when a rule corrects it (with topk 1: steps + 1;
    bench_speculative records the request). `undecided`: one of several speeds in a row, of which
    nothing says which ran with a draft. `keys`: what a table says that the run was measured on
    (dataset, model, GPU), as was its baseline. `line` is 1-based; `extra` keeps the rest.
    """

    kind: BenchKind
    line: int
    label: str | None = None
    output_tok_s: float | None = None
    total_tok_s: float | None = None
    request_s: float | None = None
    accept_len: float | None = None
    accept_rate: float | None = None
    step_ms: float | None = None
    concurrency: float | None = None
    max_concurrency: int | None = None
    batch_size: int | None = None
    duration_s: float | None = None
    completed: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    mean_ttft_ms: float | None = None
    mean_tpot_ms: float | None = None
    mean_itl_ms: float | None = None
    mean_e2e_ms: float | None = None
    dataset: str | None = None
    ignore_eos: bool | None = None
    num_steps: int | None = None
    topk: int | None = None
    requested_draft_tokens: int | None = None
    draft_tokens: int | None = None
    events_per_request: float | None = None
    is_baseline: bool | None = None
    undecided: bool = False
    keys: Keys = ()
    server_info: ServerInfo | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BenchReport:
    """What one file or paste holds; `problems` are (line, message) of parts that are unreadable,
    `remarks` what has to be said about columns that were left out."""

    runs: tuple[BenchRun, ...]
    problems: tuple[tuple[int, str], ...] = ()
    remarks: tuple[str, ...] = ()


_FIELDS = frozenset(f.name for f in fields(BenchRun)) - {"kind", "line", "server_info", "extra"}
_NAMESPACE = regex(r"\b(dataset_name|disable_ignore_eos|max_concurrency|tag)=('[^']*'|\w+)")
_CLIENT = regex(r"bench|[=$]")  # a line of the client's command, or a variable in one
_MODULES = ("sglang.bench_serving", "sglang.benchmark.serving", "bench_serving.py")


def read_benches(text: str | bytes) -> BenchReport:
    """Read every run in `text`; an empty `runs` means none was recognised. Never raises."""
    content = as_text(text)
    lines = content.split("\n")
    problems: list[tuple[int, str]] = []
    remarks: list[str] = []
    runs = [_by_label(run) for run in _from_json(content, lines, problems)]
    if not runs:
        tables = printed_tables.printed_tables(lines)
        runs = _compared([_printed(table, lines) for table in tables])
        taken = [(first, last) for first, last, _ in tables]
        # Rows of a client's own table are no columns of another one.
        others = ["" if _inside(at, taken) else line for at, line in enumerate(lines, 1)]
        rows = bench_tables.pipe_tables(others, remarks)
        compared = _compared([_by_label(_run("table", row)) for row in rows])
        remarks += _alone(compared)
        runs += compared
        if runs and not any(run.is_baseline for run in runs):
            told = [*taken, *((first, last) for first, last, _ in rows)]
            runs += _told_baseline(lines, told)
    commands = _commands(content)
    runs += commands
    if not runs:
        reports = bench_prose.client_report(lines, lambda number: _engine_line(lines, number))
        runs = _compared([_by_label(_run("client-report", report)) for report in reports])
        positions = bench_prose.acceptance_by_position(lines)
        if "SpecDecoding" not in content:
            runs += [_run("client-report", found) for found in positions]
    ordered = tuple(sorted(runs, key=lambda run: run.line))
    return BenchReport(ordered, tuple(problems), tuple(remarks))


def _told_baseline(lines: list[str], tables: list[tuple[int, int]]) -> list[BenchRun]:
    """The speed without speculation where it stands in words beside a table that lacks it."""

    def skip(number: int) -> bool:
        return _engine_line(lines, number) or _inside(number, tables)

    found = bench_prose.client_report(lines, skip)
    return [
        _run("client-report", (line, last, {**fields, "is_baseline": True}))
        for line, last, fields in found
        if is_baseline(fields.get("label") or "") and "accept_len" not in fields
    ][:1]


def _inside(line: int, spans: list[tuple[int, int]]) -> bool:
    return any(first <= line <= last for first, last in spans)


def _engine_line(lines: list[str], number: int) -> bool:
    line = lines[number - 1] if number <= len(lines) else ""
    return "Decode batch" in line or "Prefill batch" in line or "SpecDecoding" in line


def _from_json(content: str, lines: list[str], problems: list[tuple[int, str]]) -> list[BenchRun]:
    runs: list[BenchRun] = []
    for line, value in json_values(content):
        for item in value if isinstance(value, list) else [value]:
            run = from_mapping(item, line) if isinstance(item, Mapping) else None
            if run is not None:
                runs.append(run)
    if runs:
        for at, line_text in enumerate(lines, 1):
            if (
                line_text.startswith("{")
                and len(lines) > 1
                and not line_text.rstrip().endswith("}")
            ):
                if any(run.line == at for run in runs):
                    continue
                problems.append((at, "this line is no complete JSON object; it was left out"))
    return runs


def from_mapping(data: Mapping[str, Any], line: int = 1) -> BenchRun | None:
    """A decoded result object as a run; None when it is none."""
    if "step_time" in data and ("acc_length" in data or "speed" in data):
        return _speculative(data, line)
    if "acc_length" in data or "overall_throughput" in data:
        return _one_batch(data, line)
    if "output_throughput" in data or ("duration" in data and "completed" in data):
        return _serving(data, line)
    return None


def _serving(data: Mapping[str, Any], line: int) -> BenchRun:
    info = data.get("server_info")
    known = isinstance(info, Mapping) and (
        server_info.looks_like(info) or "speculative_algorithm" in info
    )
    kept = {
        key: value
        for key, value in data.items()
        if key != "server_info" and not isinstance(value, list | dict)
    }
    length = number(data.get("accept_length"))
    if length is None:
        length = number(data.get("spec_decode_acceptance_length"))
    rates = data.get("spec_decode_per_position_acceptance_rates")
    if isinstance(rates, list) and rates and all(number(rate) is not None for rate in rates):
        kept["per_position"] = rates
    info_read = server_info.from_mapping(info) if known and isinstance(info, Mapping) else None
    args = info_read.args if info_read else {}
    return BenchRun(
        kind="bench-serving-jsonl",
        line=line,
        label=data["tag"] if isinstance(data.get("tag"), str) and data["tag"] else None,
        output_tok_s=number(data.get("output_throughput")),
        total_tok_s=number(data.get("total_throughput", data.get("total_token_throughput"))),
        request_s=number(data.get("request_throughput")),
        accept_len=length if length is None or length >= 1 else None,
        concurrency=number(data.get("concurrency")),
        max_concurrency=whole(data.get("max_concurrency")),
        duration_s=number(data.get("duration")),
        completed=whole(data.get("completed")),
        input_tokens=whole(data.get("total_input_tokens")),
        output_tokens=whole(data.get("total_output_tokens")),
        mean_ttft_ms=number(data.get("mean_ttft_ms")),
        mean_tpot_ms=number(data.get("mean_tpot_ms")),
        mean_itl_ms=number(data.get("mean_itl_ms")),
        mean_e2e_ms=number(data.get("mean_e2e_latency_ms", data.get("mean_e2el_ms"))),
        dataset=data["dataset_name"] if isinstance(data.get("dataset_name"), str) else None,
        num_steps=whole(args.get("speculative_num_steps")),
        topk=whole(args.get("speculative_eagle_topk")),
        draft_tokens=whole(args.get("speculative_num_draft_tokens")),
        is_baseline=(args.get("speculative_algorithm") is None) if info_read else None,
        server_info=info_read,
        extra=kept,
    )


def _one_batch(data: Mapping[str, Any], line: int) -> BenchRun:
    length = number(data.get("acc_length"))
    ttft = number(data.get("last_ttft", data.get("ttft")))
    return BenchRun(
        kind="bench-one-batch",
        line=line,
        label=data["run_name"] if isinstance(data.get("run_name"), str) else None,
        output_tok_s=number(data.get("output_throughput", data.get("last_gen_throughput"))),
        total_tok_s=number(data.get("overall_throughput")),
        # -1 stands for "no speculation".
        accept_len=length if length is not None and length >= 1 else None,
        batch_size=whole(data.get("batch_size")),
        duration_s=number(data.get("latency")),
        mean_ttft_ms=None if ttft is None else 1000 * ttft,
        is_baseline=True if length is not None and length < 1 else None,
        extra=dict(data),
    )


def _speculative(data: Mapping[str, Any], line: int) -> BenchRun:
    steps, topk = whole(data.get("steps")), whole(data.get("topk"))
    asked = whole(data.get("num_draft_tokens"))
    step = number(data.get("step_time"))
    plain = steps == 0
    return BenchRun(
        kind="bench-speculative",
        line=line,
        output_tok_s=number(data.get("speed")),
        accept_len=number(data.get("acc_length")) if not plain else None,
        step_ms=None if step is None else 1000 * step,
        batch_size=whole(data.get("batch_size")),
        output_tokens=whole(data.get("completion_tokens")),
        num_steps=None if plain else steps,
        topk=None if plain else topk,
        requested_draft_tokens=None if plain else asked,
        draft_tokens=None if plain else _in_force(steps, topk, asked),
        is_baseline=plain,
        extra=dict(data),
    )


def _in_force(steps: int | None, topk: int | None, asked: int | None) -> int | None:
    return steps + 1 if topk == 1 and steps is not None else asked


def _run(kind: BenchKind, found: Found) -> BenchRun:
    line, _, values = found
    known = {key: value for key, value in values.items() if key in _FIELDS}
    extra = dict(values.get("extra", {}))
    for name in WHOLE & known.keys():
        if not isinstance(known[name], int):
            extra[name] = known.pop(name)
    if known.get("accept_len") is not None and known["accept_len"] < 1:
        extra["accept_len"] = known.pop("accept_len")
    asked = known.get("requested_draft_tokens")
    known.setdefault("draft_tokens", _in_force(known.get("num_steps"), known.get("topk"), asked))
    return BenchRun(kind=kind, line=line, **known, extra=extra)


def _printed(table: Found, lines: list[str]) -> BenchRun:
    """A printed table, with what the client printed above it about its prompts."""
    first, _, values = table
    speculative = {"acceptance_rate", "drafts", "draft_tokens", "accepted_tokens"}
    is_vllm = "backend" not in values["extra"] or speculative & values["extra"].keys()
    run = _run("vllm-bench" if is_vllm else "bench-serving-table", table)
    for at in range(first - 1, max(-1, first - 60), -1):
        line = lines[at]
        if "Namespace(" in line:
            told = dict(_NAMESPACE.findall(line[:20_000]))
            dataset = told.get("dataset_name", "").strip("'") or None
            eos = told.get("disable_ignore_eos")
            return _with(run, dataset=dataset, ignore_eos=None if eos is None else eos == "False")
        if "Serving Benchmark Result" in line and at != first - 1:
            break
    return run


def _with(run: BenchRun, **changes: Any) -> BenchRun:
    values = {f.name: getattr(run, f.name) for f in fields(BenchRun)} | changes
    return BenchRun(**values)


def _by_label(run: BenchRun) -> BenchRun:
    """The run with what only its name tells."""
    told = told_by_label(run.label) if run.label else {}
    missing = {key: value for key, value in told.items() if getattr(run, key) is None}
    if run.server_info is not None or not missing:
        return run
    full = _with(run, **missing)
    if full.draft_tokens is not None:
        return full
    in_force = _in_force(full.num_steps, full.topk, full.requested_draft_tokens)
    return _with(full, draft_tokens=in_force)


def _compared(runs: list[BenchRun]) -> list[BenchRun]:
    """Mark the row without speculation, by its label or because the others have what it lacks."""
    others = any(run.accept_len is not None or run.num_steps for run in runs)
    out = []
    for run in runs:
        named = run.is_baseline or (run.label is not None and is_baseline(run.label))
        # A plain step gives one token; people write that, and no draft steps, into its row.
        bare = run.accept_len in (None, 1.0) and not run.num_steps
        if bare and (named or run.num_steps == 0):
            plain = {"accept_len": None, "num_steps": None, "topk": None, "draft_tokens": None}
            out.append(_with(run, is_baseline=True, requested_draft_tokens=None, **plain))
        elif others and not bare:
            out.append(_with(run, is_baseline=False))
        else:
            out.append(run)
    return out


def _alone(runs: list[BenchRun]) -> list[str]:
    """What has to be said of runs of which no plain run was measured on the same."""
    plain = [run for run in runs if run.is_baseline]
    alone = [
        f"'{run.label}' ({said(run.keys)})"
        for run in runs
        if plain and run.keys and run.is_baseline is not True and not run.undecided
        if not any(same_keys(run.keys, other.keys) for other in plain)
    ]
    if not alone:
        return []
    return [f"no plain row was measured on the same as {', '.join(alone[:4])}"]


def _commands(content: str) -> list[BenchRun]:
    """What the client's own command line says: prompts and concurrency, no figures."""
    signs = ("bench_serving", "benchmark.serving", "vllm bench serve")
    if not any(sign in content for sign in signs):
        return []
    runs = []
    for command in shell.commands(content, _CLIENT):
        texts = [word.text for word in command.words]
        start = next(
            (
                at + 1
                for at, text in enumerate(texts)
                if text.endswith(_MODULES) or texts[at - 1 : at + 1] == ["bench", "serve"]
            ),
            None,
        )
        if start is None:
            continue
        told: dict[str, str] = {}
        for at in range(start, len(texts)):
            name, equals, value = texts[at].partition("=")
            if name.startswith("--"):
                following = texts[at + 1] if at + 1 < len(texts) else ""
                told[name] = value if equals else ("" if following.startswith("--") else following)
        dataset = told.get("--dataset-name")
        is_sglang = texts[start - 1].endswith(_MODULES)
        # SGLang's client ignores the end of text unless told otherwise, vLLM's only when told so.
        ignore = "--disable-ignore-eos" not in told if is_sglang else "--ignore-eos" in told
        limit = told.get("--max-concurrency", "")
        runs.append(
            BenchRun(
                kind="bench-serving-command",
                line=command.words[0].line,
                max_concurrency=int(limit) if limit.isascii() and limit.isdigit() else None,
                dataset=dataset or ("sharegpt" if is_sglang else None),
                ignore_eos=ignore,
                extra=told,
            )
        )
    return runs
