"""What a check needs and a case lacks, in a reader's words; None when nothing is lacking."""

from __future__ import annotations

import math

from specdebug.diagnosis.arguments import setups
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.figures import (
    baseline,
    cost_points,
    most_in_a_step,
    speculative_runs,
)
from specdebug.diagnosis.profile import profile
from specdebug.diagnosis.reference import reference_for


def _and(*parts: str | None) -> str | None:
    lacking = [p for p in parts if p]
    return " and ".join(lacking) or None


def nothing(case: Case) -> str | None:
    return None


def gpu_samples(case: Case) -> str | None:
    return None if case.gpus else "GPU samples of a run that was measured here"


def command(case: Case) -> str | None:
    return None if case.launches else "the launch command"


def command_or_rows(case: Case) -> str | None:
    rows = any(r.draft_tokens_asked is not None for r in case.measured)
    return None if rows else command(case)


def log(case: Case) -> str | None:
    return None if case.boots else "the server log"


def decode_lines(case: Case) -> str | None:
    return None if any(b.stretches for b in case.boots) else "decode lines of the server log"


def log_or_command(case: Case) -> str | None:
    return None if case.boots or case.launches else "the server log or the launch command"


def rates(case: Case) -> str | None:
    for boot in case.boots:
        for stretch in boot.stretches:
            if any(not math.isnan(r) for r in stretch.accept_rate):
                return None
    if any(row.accept_len and row.accept_rate for row in case.measured):
        return None
    return "decode lines with accept len and accept rate (0.5.4 and later)"


def draft(case: Case) -> str | None:
    return None if case.draft else "the draft's config.json"


def target(case: Case) -> str | None:
    return None if case.target else "the target's config.json"


def features(case: Case) -> str | None:
    return None if case.training.features else "the layers the draft was trained on"


def draft_and_target(case: Case) -> str | None:
    return _and(draft(case), target(case))


def draft_and_features(case: Case) -> str | None:
    return _and(draft(case), features(case))


def draft_and_command(case: Case) -> str | None:
    return _and(draft(case), log_or_command(case))


def draft_and_algorithm(case: Case) -> str | None:
    if any(s.algorithm for s in setups(case)):
        loaded = any(n.kind == "model-load" for b in case.boots for n in b.notices)
        return None if loaded else draft(case)
    return "the speculative algorithm (launch command or server_args)"


def draft_or_log(case: Case) -> str | None:
    return None if case.draft or case.boots else "the draft's config.json or the server log"


def header(case: Case) -> str | None:
    return _and(draft(case), None if case.header else "the draft's safetensors header")


def limit_and_load(case: Case) -> str | None:
    if not setups(case):
        return "the launch command and the server log"
    load = decode_lines(case) is None or case.concurrency or case.measured or case.bench_flags
    return None if load else "the load: decode lines or the client's concurrency"


def acceptance(case: Case) -> str | None:
    if any(r.accept_len for r in speculative_runs(case)) or case.positions:
        return None
    return "an accept length (decode lines, benchmark or /generate answers)"


def acceptance_and_window(case: Case) -> str | None:
    told = any(r.accept_len and most_in_a_step(r) for r in speculative_runs(case))
    return acceptance(case) or (None if told or case.positions else "draft tokens in force")


def accuracy(case: Case) -> str | None:
    known = "the draft's validation accuracy" if case.training.val_accuracy is None else None
    return _and(known, acceptance(case))


def reference(case: Case) -> str | None:
    if reference_for(case) is None:
        return "a public acceptance curve for this target"
    return acceptance(case)


def by_position(case: Case) -> str | None:
    found = profile(case)
    if found is None or len(found.conditional) < 2:
        return "acceptance by position (spec_accept_histogram), or runs at num_steps 1 and deeper"
    return None


def several_ranks(case: Case) -> str | None:
    if any(len(b.stretches) > 1 for b in case.boots):
        return None
    return "decode lines of several ranks"


def baseline_and_run(case: Case) -> str | None:
    plain = None if baseline(case) else "a run without speculation"
    spec = any(r.tok_s for r in speculative_runs(case))
    return _and(plain, None if spec else "the throughput of a speculative run")


def baseline_and_step(case: Case) -> str | None:
    step = any(r.step_ms for r in speculative_runs(case))
    plain = None if baseline(case) else "a run without speculation"
    return _and(plain, None if step else "accept length and throughput of one run")


def two_depths(case: Case) -> str | None:
    plain = None if baseline(case) else "a run without speculation"
    return _and(plain, None if len(cost_points(case)) > 1 else "runs at two num_steps")


def profile_and_cost(case: Case) -> str | None:
    line = None if len(cost_points(case)) > 1 else "runs at two num_steps"
    return _and(by_position(case), line)


def window_and_load(case: Case) -> str | None:
    known = any(r.window and r.running_known for r in speculative_runs(case))
    return None if known else "draft tokens in force and running requests"


def client(case: Case) -> str | None:
    return None if case.measured or case.bench_flags else "the client's output or command"


def client_and_log(case: Case) -> str | None:
    rows = None if case.measured else "the client's output"
    return _and(rows, decode_lines(case))
