"""The figures behind a case: runs side by side and their cost; acceptance by position is `profile`.

It computes and names its sources; whether a figure is a fault is decided in checks/.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePath

from specdebug.diagnosis.arguments import NUM_STEPS, TOPK, Setup, release_knowledge, setups
from specdebug.diagnosis.decode import summary_of, together, window_reading
from specdebug.diagnosis.facts import Case, Measured
from specdebug.diagnosis.findings import Evidence
from specdebug.eagle.speedup import CostLine, CostPoint, cost_line, plain_step_ms, step_ms
from specdebug.measure.middle import mean
from specdebug.sglang.key_columns import Keys, same_keys
from specdebug.sglang.patterns import regex

__all__ = [
    "Run",
    "base_step_ms",
    "baseline",
    "baseline_of",
    "comparable",
    "cost",
    "cost_points",
    "most_in_a_step",
    "primary",
    "runs",
    "speculative_runs",
]


@dataclass(frozen=True)
class Run:
    """One measured configuration, whatever it was read from.

    window: tokens verified per step, num_steps + 1 for a chain; window_assumed: nothing names topk,
    and that is the window if it is 1. blocks: one draft step gives a whole block, so that num_steps
    does not bound what may be accepted. tok_s: middle of the figures, over all running requests.
    running: requests decoded at once, 1 assumed where nothing says.
    origin: "log" (decode lines), "state" (the server's own average) or "row".
    keys: what a table says the run was measured on.
    """

    label: str
    speculative: bool
    num_steps: int | None
    window: int | None
    chain: bool
    tok_s: float | None
    samples: tuple[float, ...]
    accept_len: float | None
    running: float
    running_known: bool
    step_ms: float | None
    drafts: int | None
    counted_by: str
    evidence: tuple[Evidence, ...]
    setup: Setup | None = None
    dataset: str | None = None
    changes: tuple[str, ...] = ()
    origin: str = "row"
    blocks: bool = False
    window_assumed: bool = False
    keys: Keys = ()

    @property
    def most(self) -> int | None:
        """The most tokens that a step can yield, None where that is not known."""
        if self.blocks or self.num_steps is None:
            return self.window
        return min(self.num_steps + 1, self.window or self.num_steps + 1)


def most_in_a_step(run: Run) -> int | None:
    """The most tokens that a step of a run can yield: by its arguments, else by the accept rate of
    its decode lines where that fits one window only; None where neither tells."""
    if run.num_steps:
        return run.most
    boot = run.setup.boot if run.setup else None
    if run.origin != "log" or run.setup is None or boot is None or run.blocks:
        return None
    reading = window_reading(boot, release_knowledge(run.setup))
    return reading.windows[0] if reading is not None and len(reading.windows) == 1 else None


_BLOCKS = ("DFLASH", "DSPARK", "NGRAM")


def _drafts_blocks(setup: Setup | None) -> bool:
    return setup is not None and setup.algorithm in _BLOCKS


def _is_chain(topk: float | None, setup: Setup | None) -> bool:
    return topk in (None, 1) and not _drafts_blocks(setup)


def _boot_run(setup: Setup) -> Run | None:
    boot = setup.boot
    parts = summary_of(boot) if boot is not None else ()
    if boot is None or not parts:
        return None
    whole = together(parts)
    topk = setup.number(TOPK)
    window = setup.window
    steps = setup.number(NUM_STEPS)
    starts = sum(1 for b in setup.case.boots if b.source == boot.source)
    name = PurePath(boot.source).name
    part = boot.heading or f"start at line {boot.line}"
    label = name if starts == 1 else f"{name}, {part}"
    return Run(
        label=label,
        speculative=whole.speculative,
        num_steps=steps if whole.speculative else None,
        window=window if whole.speculative else None,
        chain=_is_chain(topk, setup),
        blocks=_drafts_blocks(setup),
        tok_s=whole.tok_s,
        samples=(whole.tok_s,) if whole.tok_s else (),
        accept_len=whole.accept_len,
        running=whole.running or 1.0,
        running_known=whole.running is not None,
        step_ms=whole.step_ms,
        drafts=whole.drafts,
        counted_by="server",
        evidence=whole.evidence,
        setup=setup,
        origin="log",
    )


def _row_run(case: Case, row: Measured) -> Run:
    speculative = row.speculative if row.speculative is not None else row.accept_len is not None
    if row.speculative is None and row.workload not in (None, "table") and not _plain(case, row):
        # A client that does not know what it measured measured the server that is known.
        speculative = speculative or any(s.algorithm for s in setups(case))
    if row.speculative is None and not speculative:
        # Told beside a baseline and a drafting run, a bare speed is another drafting run's.
        told = {other.speculative for other in case.measured if other.source == row.source}
        speculative = {True, False} <= told and row.workload in ("table", "client-report")
    topk = row.topk
    steps, window = row.num_steps, row.draft_tokens
    matching = [
        s
        for s in setups(case)
        if s.algorithm and steps is not None and s.number(NUM_STEPS) == steps
    ]
    setup = matching[0] if matching else None
    client = row.workload not in (None, "table", "bench-speculative")
    lone = row.workload == "table" and sum(bool(r.accept_len) for r in case.measured) == 1
    if speculative and steps is None and (client or lone):
        # A client knows nothing of the server's window; the only server around does. So does the
        # only command for the only drafting row of a table.
        known = [s for s in setups(case) if s.algorithm or s.asked_number(NUM_STEPS) is not None]
        if len(known) == 1:
            setup = known[0]
            steps, topk = setup.number(NUM_STEPS), setup.number(TOPK)
            window = setup.window
    assumed = bool(speculative and window is None and steps is not None and topk is None)
    if speculative and window is None and steps is not None and topk in (None, 1):
        window = steps + 1
    if speculative and window is not None and steps is None and topk in (None, 1):
        steps = window - 1
    tok_s = mean(row.tok_s) if row.tok_s else None
    running = row.running
    limit = _limit(case, setup) if client and running else None
    if running and limit and speculative:
        running = min(running, limit)  # the client's other requests wait in the queue
    if running is None and case.concurrency is not None:
        running = float(case.concurrency.value)
    time = row.step_ms
    if time is None and tok_s and (row.accept_len or not speculative):
        time = step_ms(row.accept_len or 1.0, tok_s, running or 1.0)
    if time and tok_s is None and (row.accept_len or not speculative):
        # A row of step times: tokens per step over the time of a step, for all requests together.
        tok_s = 1000 * (row.accept_len or 1.0) * (running or 1.0) / time
    return Run(
        label=row.label,
        speculative=speculative,
        num_steps=steps if speculative else None,
        window=window if speculative else None,
        chain=_is_chain(topk, setup),
        blocks=_drafts_blocks(setup),
        tok_s=tok_s,
        samples=row.tok_s or ((tok_s,) if tok_s else ()),
        accept_len=row.accept_len if speculative else None,
        running=running or 1.0,
        running_known=running is not None,
        step_ms=time,
        drafts=row.drafts,
        counted_by=row.counted_by,
        evidence=(row.evidence(),),
        setup=setup,
        dataset=row.dataset,
        changes=row.changes,
        window_assumed=assumed,
        keys=row.keys,
    )


def _limit(case: Case, setup: Setup | None) -> float | None:
    """The most requests the only server that drafts runs at once, None where it is not known."""
    known = [setup] if setup is not None else [s for s in setups(case) if s.algorithm]
    most = known[0].number("max_running_requests") if len(known) == 1 else None
    return float(most) if most else None


# The clients that print the accept length whenever the server has one.
_CLIENTS = ("bench-serving-table", "bench-serving-jsonl", "vllm-bench")
_PLAIN_NAME = regex(r"(?i)base(?:line)?|plain|vanilla|no[-_ ]?spec|without[-_ ]?spec|off")


def _plain(case: Case, row: Measured) -> bool:
    """Whether a client's row without accept length is the plain one of two.

    The client prints the accept length of a server that drafts, so beside a row that has one, a row
    without it was taken from a server that does not. A file's own name tells as well.
    """
    if row.accept_len is not None:
        return False
    named = any(_PLAIN_NAME.fullmatch(w) for w in re.split(r"[\W_]+", PurePath(row.source).stem))
    return named or any(
        row.workload in _CLIENTS
        and other is not row
        and other.workload == row.workload
        and other.accept_len is not None
        for other in case.measured
    )


@lru_cache(maxsize=16)
def runs(case: Case) -> tuple[Run, ...]:
    """Every measured configuration: server logs first, then rows of clients and tables."""
    logged = [r for s in setups(case) if (r := _boot_run(s)) is not None]
    rows = [_row_run(case, row) for row in case.measured]
    stated = [
        Run(
            label=f"{PurePath(state.source).name}: average since start",
            speculative=True,
            num_steps=None,
            window=None,
            chain=True,
            tok_s=None,
            samples=(),
            accept_len=float(state.accept_len.value),
            running=1.0,
            running_known=False,
            step_ms=None,
            drafts=None,
            counted_by="server",
            evidence=(state.accept_len.evidence(),),
            setup=next((s for s in setups(case) if s.state is state), None),
            origin="state",
        )
        for state in case.states
        if state.accept_len is not None
        # A benchmark row that embeds the server's average has a figure of its own.
        and not any(r.source == state.source and r.accept_len for r in case.measured)
    ]
    return tuple(logged + rows + [_with_setup(r) for r in stated])


def _with_setup(run: Run) -> Run:
    if run.setup is None:
        return run
    return replace(
        run,
        num_steps=run.setup.number(NUM_STEPS),
        window=run.setup.window,
        chain=_is_chain(run.setup.number(TOPK), run.setup),
        blocks=_drafts_blocks(run.setup),
    )


def same_run(one: Run, other: Run) -> bool:
    """Whether a row and a log tell of the same measurement: equal depth, figures within 3 %."""
    if {one.origin, other.origin} != {"log", "row"} or one.num_steps != other.num_steps:
        return False
    pairs = ((one.tok_s, other.tok_s), (one.accept_len, other.accept_len))
    return all(a and b and abs(a / b - 1) <= 0.03 for a, b in pairs)


def speculative_runs(case: Case) -> tuple[Run, ...]:
    """The runs with a draft."""
    return tuple(r for r in runs(case) if r.speculative)


def primary(case: Case) -> Run | None:
    """The run the figures of the answer are about: the first speculative one, logs before rows."""
    found = speculative_runs(case)
    return next((r for r in found if r.tok_s), found[0] if found else None)


@lru_cache(maxsize=16)
def baseline(case: Case) -> Run | None:
    """The plain run: as the person said, else a row or a log without speculation."""
    if case.baseline_tok_s is not None:
        fact = case.baseline_tok_s
        running = float(case.concurrency.value) if case.concurrency else None
        tok_s = float(fact.value)
        return Run(
            label="baseline",
            speculative=False,
            num_steps=None,
            window=None,
            chain=True,
            tok_s=tok_s,
            samples=(tok_s,),
            accept_len=None,
            running=running or 1.0,
            running_known=running is not None,
            step_ms=plain_step_ms(tok_s, running or 1.0),
            drafts=None,
            counted_by="client",
            evidence=(fact.evidence(),),
        )
    main = primary(case)
    return next((r for r in _plain_runs(case) if main is None or _on_the_same(r, main)), None)


def _plain_runs(case: Case) -> list[Run]:
    return [r for r in runs(case) if not r.speculative and r.tok_s]


def _on_the_same(base: Run, run: Run) -> bool:
    """Whether two runs were measured on the same prompts, GPU and model, as far as both say."""
    return same_keys(base.keys, run.keys)


def baseline_of(case: Case, run: Run) -> Run | None:
    """The plain run to set against `run`: of several one measured on the same, and of these the
    one with as many requests at once. None where all plain runs were measured on something else."""
    if case.baseline_tok_s is not None:
        return baseline(case)
    plain = [r for r in _plain_runs(case) if _on_the_same(r, run)]
    return next((r for r in plain if comparable(r, run)), plain[0] if plain else None)


def comparable(base: Run, run: Run) -> bool:
    """Whether two runs were measured on the same, with about as many requests at once, as far as
    is known.

    A baseline that does not say is taken to have run under the same load as the other run.
    """
    if not _on_the_same(base, run):
        return False
    if not base.running_known or not run.running_known:
        return True
    return 0.8 <= run.running / base.running <= 1.25


def base_step_ms(base: Run, run: Run) -> float | None:
    """Time of a plain step in ms at the load of `run`."""
    if base.tok_s is None:
        return None
    return plain_step_ms(base.tok_s, base.running if base.running_known else run.running)


def cost_points(case: Case) -> tuple[CostPoint, ...]:
    """Step time by num_steps, of chain drafts at one load; a row wins over a log of the same."""
    points: dict[int, CostPoint] = {}
    main = primary(case)
    for run in speculative_runs(case):
        if run.num_steps is None or run.step_ms is None or not run.chain or main is None:
            continue
        if not comparable(main, run) or (run.setup and run.setup.on_cpu and run.step_ms <= 0):
            continue
        if run.num_steps not in points or run.origin == "row":
            points[run.num_steps] = CostPoint(run.num_steps, run.step_ms, run.label)
    return tuple(points[n] for n in sorted(points))


def cost(case: Case) -> CostLine | None:
    """The cost line over num_steps with the plain step, None with fewer than two depths."""
    main = primary(case)
    base = baseline_of(case, main) if main else None
    plain = base_step_ms(base, main) if base and main else None
    return cost_line(cost_points(case), plain)
