"""The advice of an investigation with what each costs here and whether one click can start it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.models import ConfigEntry, Finding, Run
from experiments.queries import InvestigationPage
from experiments.refusal import Refused
from experiments.reports.document import known_beside_runs
from experiments.reports.record import record_of
from specdebug.diagnosis.advice import Advice, advise
from specdebug.diagnosis.next_run import Cost, NextRun, Spent, cost_of, next_run
from specdebug.diagnosis.post_mortem import investigation_case

# Starts that a cost is taken from; older ones say little about today's host.
MOST_STARTS = 50
ON_GPUS = ("sglang", "attached")


@dataclass(frozen=True)
class Offer:
    """One advice. plan: the run that a click would start, None where a person has to act; why_not:
    why there is a plan and still no run. cost: from earlier starts on this engine."""

    advice: Advice
    plan: NextRun | None
    cost: Cost | None
    why_not: str = ""
    on_gpus: bool = True

    @property
    def startable(self) -> bool:
        return self.plan is not None and not self.why_not


def offers(page: InvestigationPage) -> tuple[Offer, ...]:
    """Ranked advice, two queries more than the page; none for an investigation that is closed."""
    if page.investigation.state != page.investigation.State.OPEN:
        return ()
    case = investigation_case(record_of(page.dossier), known_beside_runs(page.dossier))
    codes = [f.finding.code for f in page.dossier.findings if f.finding.state == Finding.State.OPEN]
    found = advise(case, codes)
    engines = {facts.run.label: facts.run.engine for facts in page.dossier.runs}
    spent = _spent(set(engines.values()))
    out = []
    for advice in found:
        plan = next_run(advice, case)
        why = _why_not(page, plan) if plan is not None else ""
        engine = engines.get(advice.run or "", "")
        cost = cost_of(advice.effort, spent.get(engine, ()))
        out.append(Offer(advice, plan, cost, why, engine in ON_GPUS))
    return tuple(out)


def offer(page: InvestigationPage, key: str) -> Offer:
    """The offer of this kind as it stands now; refused where the figures no longer give it."""
    for found in offers(page):
        if found.advice.key == key:
            return found
    raise Refused("this advice no longer follows from the figures; look at the page again")


def _why_not(page: InvestigationPage, plan: NextRun) -> str:
    of = next((f.run for f in page.dossier.runs if f.run.label == plan.of), None)
    if of is None or not of.plan.get("server_args"):
        return f"{plan.of} was entered without its server arguments"
    if of.recorded:
        return f"{plan.of} comes from a write-up; its model has to be reachable from this host"
    return ""


def _spent(engines: Iterable[str]) -> dict[str, list[Spent]]:
    """What the last starts of each engine took, from any investigation."""
    rows = list(
        Run.objects.filter(
            engine__in=list(engines),
            state=Run.State.DONE,
            recorded=False,
            claimed_at__isnull=False,
            ready_at__isnull=False,
            ended_at__isnull=False,
        )
        .order_by("-ended_at")
        .values_list("pk", "engine", "claimed_at", "ready_at", "ended_at")[:MOST_STARTS]
    )
    sizes = dict(
        ConfigEntry.objects.filter(
            run__in=[row[0] for row in rows], key="tp_size", effective_known=True
        ).values_list("run_id", "effective")
    )
    out: dict[str, list[Spent]] = {}
    for pk, engine, claimed, ready, ended in rows:
        if claimed is None or ready is None or ended is None:
            continue
        size = sizes.get(pk)
        out.setdefault(engine, []).append(
            Spent(
                (ready - claimed).total_seconds(),
                (ended - ready).total_seconds(),
                size if isinstance(size, int) and size > 0 else 1,
            )
        )
    return out
