"""What makes two runs one series: the same configuration under the same load on the same host."""

from __future__ import annotations

import hashlib
import json

from experiments import evidence
from experiments.checkup.cases import files_of
from experiments.queries import Dossier, RunFacts

# How often a load is repeated, and where a folder happens to lie, is no part of a configuration.
NO_PART = frozenset({"repeats", "warm_up_prompts"})
PLACES = frozenset({"host", "port", "speculative_draft_model_path", "log_level", "nccl_port"})


def series_key(found: Dossier, facts: RunFacts) -> str:
    """SHA-256 over engine, release, arguments in force, environment, load, draft and host.

    Empty for a run that cannot belong to a series: not measured, or its host not known.
    """
    run = facts.run
    if not facts.measured or not run.host:
        return ""
    draft = evidence.json_of(evidence.newest(files_of(found, facts), evidence.DRAFT_CONFIG))
    arguments = {
        key: entry.effective if entry.effective_known else entry.requested
        for key, entry in facts.config.items()
        if key not in PLACES and (entry.effective_known or entry.was_requested)
    }
    if draft is None:
        # Without its content a draft is told apart by where it lies.
        arguments["speculative_draft_model_path"] = facts.in_force("speculative_draft_model_path")
    load = {k: v for k, v in (run.plan.get("workload") or {}).items() if k not in NO_PART}
    whole = [run.engine, run.engine_release, run.host, run.plan.get("env") or {}, load]
    text = json.dumps([*whole, arguments, draft], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
