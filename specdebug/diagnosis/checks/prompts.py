"""Whether a client's prompts can say anything about acceptance."""

from __future__ import annotations

from specdebug.diagnosis.arguments import NUM_STEPS, setups
from specdebug.diagnosis.facts import Case
from specdebug.diagnosis.figures import speculative_runs
from specdebug.diagnosis.findings import Evidence, Finding

# The shared-prefix data set of bench_serving is made of random tokens as well.
RANDOM = {
    "random",
    "random-ids",
    "random_ids",
    "random-image",
    "random-tokens",
    "generated-shared-prefix",
}


def random_prompts(case: Case) -> list[Evidence]:
    """Where an input says that prompts were random tokens or words."""
    found = [r.evidence() for r in case.measured if r.dataset and r.dataset.lower() in RANDOM]
    fact = case.bench_flags.get("dataset_name")
    if fact is not None and str(fact.value).lower() in RANDOM:
        found.append(fact.evidence())
    return found


def prompts_not_representative(case: Case) -> Finding | None:
    """Random prompts, or outputs forced past their end, beside a speculative figure."""
    spec = speculative_runs(case)
    known = setups(case)
    drafting = spec or any(s.algorithm or s.asked(NUM_STEPS) for s in known)
    plain_only = bool(case.measured or known) and not drafting
    random = random_prompts(case)
    if random and not plain_only:
        return Finding(
            "prompts-not-representative",
            "medium",
            "certain",
            "Prompts are random tokens, which no draft was trained for: the accept length says "
            "nothing about the draft, only two runs of the same kind compare.",
            tuple(dict.fromkeys(random)),
            "Measure acceptance on real prompts (--dataset-name custom with a file of them).",
        )
    forced = [r for r in case.measured if r.ignore_eos and r.speculative is not False]
    fact = case.bench_flags.get("ignore_eos")
    if (forced or (fact is not None and fact.value)) and spec:
        where = tuple(r.evidence() for r in forced) or ((fact.evidence(),) if fact else ())
        return Finding(
            "prompts-not-representative",
            "info",
            "possible",
            "Outputs are forced past their end (ignore_eos): what follows an end of text often "
            "loops and is accepted too easily.",
            where,
            "Measure acceptance with ends of text respected.",
            "accept length with and without ignore_eos",
        )
    return None
