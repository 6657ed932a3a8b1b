"""Checks of what a step costs: slower than plain, unable to win, overhead, depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdebug.diagnosis.checks.counting import chunk_counted
from specdebug.diagnosis.checks.prompts import random_prompts
from specdebug.diagnosis.checks.serving import running_requests_capped
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.figures import (
    Run,
    base_step_ms,
    baseline,
    baseline_of,
    comparable,
    cost,
    same_run,
    speculative_runs,
)
from specdebug.diagnosis.findings import Evidence, Finding
from specdebug.diagnosis.profile import profile
from specdebug.eagle.speedup import break_even_accept_len, ceiling_tok_s
from specdebug.measure.compare import compare, split_throughput

if TYPE_CHECKING:
    from specdebug.eagle.account import Depth

# Run-to-run spread taken where runs were not repeated; said in every sentence that uses it.
ASSUMED_CV = 0.03


def against_baseline(case: Case) -> list[tuple[Run, Run]]:
    """(baseline, run) for each speculative run that may be compared with the plain one."""
    counted = chunk_counted(case)
    out: list[tuple[Run, Run]] = []
    for run in speculative_runs(case):
        base = baseline_of(case, run)
        if base is None or not base.tok_s or not run.tok_s or not comparable(base, run):
            continue
        if any(run is c.client for c in counted):
            continue
        if not any(same_run(run, known) for _, known in out):
            out.append((base, run))
    return out


def slower_than_baseline(case: Case) -> Finding | None:
    """Throughput below the plain run beyond noise, split into acceptance and step time."""
    slower: list[str] = []
    bases: list[Run] = []
    evidence: list[Evidence] = []
    split = ""
    if running_requests_capped(case) is not None:
        return None  # another load on each side: that finding says why nothing follows
    for base, run in against_baseline(case):
        outcome = compare(base.samples, run.samples, pooled_cv=ASSUMED_CV, say_repeats=False)
        # A small change leaves no doubt that there is one, only whether it is more than 2 %.
        if outcome.verdict not in ("regression", "small change") or outcome.ratio >= 1:
            continue
        slower.append(f"{run.label} {run.tok_s:.4g} tok/s ({outcome.change_percent:+.1f} %)")
        bases.append(base)
        evidence += run.evidence
        if run.accept_len and run.tok_s and base.tok_s and not split:
            parts = split_throughput(base.tok_s, run.tok_s, 1.0, run.accept_len)
            split = f" For {run.label}: {parts.sentence}."
    if not slower:
        return None
    single = any(len(b.samples) == 1 for b in bases)
    plain = " and ".join(f"{b.tok_s:.4g}" for b in dict.fromkeys(bases))
    evidence = [*(e for b in dict.fromkeys(bases) for e in b.evidence), *evidence]
    return Finding(
        "slower-than-baseline",
        "high",
        "likely" if single else "certain",
        f"Slower than the plain run of {plain} tok/s: " + "; ".join(slower) + "." + split,
        tuple(dict.fromkeys(evidence)),
        "Read the cost findings: they say whether acceptance or the step time is short.",
        f"repeats: single figures are judged with an assumed spread of {100 * ASSUMED_CV:.0f} %"
        if single
        else "",
    )


def _break_even(base: Run, run: Run) -> tuple[float, float, float] | None:
    """(break-even accept length, step ms, plain step ms) of a run."""
    plain = base_step_ms(base, run)
    if plain is None or run.step_ms is None:
        return None
    return break_even_accept_len(run.step_ms, plain), run.step_ms, plain


def speculation_cannot_win(case: Case) -> Finding | None:
    """The break-even accept length is above the most a step can yield."""
    for base, run in against_baseline(case):
        found = _break_even(base, run)
        if found is None or not run.most or not (run.chain or run.blocks or run.num_steps):
            continue
        needed, spec, plain = found
        if needed <= run.most * 1.005:
            continue
        top = ceiling_tok_s(run.most, spec, run.running)
        return Finding(
            "speculation-cannot-win",
            "critical",
            "likely",
            f"{run.label}: a step takes {spec:.1f} ms against {plain:.1f} ms plain, so break-even "
            f"is an accept length of {needed:.2f}, above the {run.most} a step can yield: even "
            f"a perfect draft reaches {top:.0f} tok/s of {base.tok_s:.4g}.",
            (*base.evidence, *run.evidence),
            "Cut the cost of a step first" + _how_much_is_fixed(case) + "; more draft steps raise "
            "the ceiling and the cost.",
            "the same client and load for both runs",
        )
    return None


def _how_much_is_fixed(case: Case) -> str:
    if step_overhead_unexplained(case) is not None:
        return " (see step-overhead-unexplained)"
    return "" if cost(case) else ", of which a run at another num_steps shows the fixed part"


def below_break_even(case: Case) -> Finding | None:
    """The measured accept length is below break-even."""
    short: list[str] = []
    evidence: list[Evidence] = []
    for base, run in against_baseline(case):
        found = _break_even(base, run)
        if found is None or run.accept_len is None:
            continue
        needed, spec, plain = found
        # Noise of both throughputs: nothing is claimed within two spreads.
        if needed <= run.accept_len * (1 + 2 * ASSUMED_CV):
            continue
        saved = spec - run.accept_len * plain
        short.append(
            f"{run.label} needs {needed:.2f} and has {run.accept_len:.2f}: "
            f"{needed - run.accept_len:+.2f} accept length or {-saved:.1f} ms a step"
        )
        evidence += [*base.evidence, *run.evidence]
    if not short:
        return None
    return Finding(
        "below-break-even",
        "high",
        "likely",
        "Accept length below break-even: " + "; ".join(short) + ".",
        tuple(dict.fromkeys(evidence)),
        "Raise acceptance or cut the step time by the amounts named.",
        "the same client and load for both runs",
    )


def step_overhead_unexplained(case: Case) -> Finding | None:
    """The fixed part of a step lies far above a plain step."""
    line = cost(case)
    if line is None or line.plain_ms is None or line.overhead_ms is None:
        return None
    if line.overhead_ms <= 0.5 * line.plain_ms:
        return None
    points = ", ".join(f"{p.step_ms:.1f} ms at num_steps {p.num_steps}" for p in line.points)
    base = baseline(case)
    evidence = tuple(base.evidence if base else ()) + tuple(
        e
        for r in speculative_runs(case)
        if r.label in {p.label for p in line.points}
        for e in r.evidence
    )
    return Finding(
        "step-overhead-unexplained",
        "high",
        "likely",
        f"A draft step costs {line.slope_ms:.2f} ms ({points}), which leaves a fixed part of "
        f"{line.fixed_ms:.1f} ms: {line.overhead_ms:.1f} ms above the plain step of "
        f"{line.plain_ms:.1f} ms are unexplained.",
        evidence,
        "Suspects in order: draft path without CUDA graphs, the attention backend of the "
        "verification, the overlap scheduler off, two different clients for the two figures.",
        "step_time_dict (SGLANG_RECORD_STEP_TIME=1), or a profile of one step",
    )


def predicted_best(case: Case) -> Depth | None:
    """The best num_steps by the cost account, with the range that its page shows as well."""
    if len({r.num_steps for r in speculative_runs(case) if r.num_steps}) < 2:
        return None
    from specdebug.diagnosis.account import account_of, draft_runs  # late: few inputs have two

    account = account_of(draft_runs(case))
    return None if account is None else account.best()


def draft_too_deep(case: Case) -> Finding | None:
    """A smaller num_steps is predicted, or was measured, to be faster by more than the noise."""
    best = predicted_best(case)
    if best is None or random_prompts(case):
        return None
    reach = best.tok_s
    deep = [
        r
        for r in speculative_runs(case)
        if r.num_steps
        and r.tok_s
        and r.num_steps > best.num_steps
        and best.tok_s.low > r.tok_s * 1.02
    ]
    if not deep:
        return None
    run = max(deep, key=lambda r: r.num_steps or 0)
    found = profile(case)
    known = next(
        (r for r in speculative_runs(case) if r.num_steps == best.num_steps and r.tok_s), None
    )
    if known is not None and (known.tok_s or 0) <= (run.tok_s or 0):
        return None  # measured, and no faster
    if known is not None:
        return Finding(
            "draft-too-deep",
            "medium",
            "likely",
            f"{run.label} runs {run.num_steps} draft steps at {run.tok_s:.4g} tok/s; num_steps "
            f"{best.num_steps} gave {known.tok_s:.4g} tok/s and is the best predicted "
            f"({reach.low:.0f} to {reach.high:.0f} tok/s).",
            (*run.evidence, *known.evidence),
            f"Use --speculative-num-steps {best.num_steps}.",
            "repeats of both, interleaved",
        )
    return Finding(
        "draft-too-deep",
        "medium",
        "likely" if found is not None and found.measured else "possible",
        f"{run.label} runs {run.num_steps} draft steps at {run.tok_s:.4g} tok/s; num_steps "
        f"{best.num_steps} is predicted to give {reach.low:.0f} to {reach.high:.0f} tok/s.",
        run.evidence,
        f"Measure --speculative-num-steps {best.num_steps}, interleaved with the present value.",
        f"one run at num_steps {best.num_steps}",
    )
