"""The runs that a comparison names, of any investigations, with their figures and arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from experiments.models import ConfigChange, ConfigEntry, Repeat, Run
from experiments.queries.comparable import ratios
from experiments.queries.dossier import RunFacts, grouped
from experiments.queries.figures import figures_of
from experiments.queries.prepared import Prepared

FEWEST, MOST = 2, 8
# Runs offered for adding: those of the same investigations, the newest first.
MOST_OFFERED = 200
_NAME = re.compile(r"([-a-zA-Z0-9_]{1,80})/[rR]?(\d{1,9})")


@dataclass(frozen=True)
class Compared:
    """The named runs in the order asked, the baseline among them.

    unread: names that are no run. offered: other runs of the same investigations.
    spread: (engine, repeats' tok/s) of every replicated run of those investigations, from which the
    run-to-run spread is pooled.
    """

    runs: tuple[RunFacts, ...]
    baseline: RunFacts | None
    unread: tuple[str, ...]
    offered: tuple[Run, ...]
    spread: tuple[tuple[str, tuple[float, ...]], ...]

    @property
    def several(self) -> bool:
        """Whether the runs belong to more than one investigation."""
        return len({facts.run.investigation_id for facts in self.runs}) > 1


def name_of(run: Run) -> str:
    """A run's name in an address: kimi-k2-5/R3."""
    return f"{run.investigation.slug}/R{run.number}"


def compared(names: Sequence[str], baseline: str = "") -> Compared:
    """The runs by name, at most `MOST`; without a named baseline the goal's own, else the first.

    5 queries however many runs are named.
    """
    asked = list(dict.fromkeys(n.strip() for n in [*([baseline] if baseline else []), *names]))
    read = {name: found for name in asked if (found := _NAME.fullmatch(name))}
    runs = _runs([(m.group(1), int(m.group(2))) for m in read.values()])
    known = {(run.investigation.slug, run.number): run for run in runs}

    def find(name: str) -> Run | None:
        m = read.get(name.strip())
        return known.get((m.group(1), int(m.group(2)))) if m else None

    # In the order of the address; a baseline that is not among the names stands first.
    order = [n.strip() for n in names]
    if baseline and baseline.strip() not in order:
        order.insert(0, baseline.strip())
    rows = list(dict.fromkeys(run for name in order if (run := find(name)) is not None))[:MOST]
    base = find(baseline) if baseline else None
    if base is None:
        goals = {run.investigation.baseline_id for run in rows}
        base = next((run for run in rows if run.pk in goals), rows[0] if rows else None)
    facts = _facts(rows, base)
    own = {run.investigation_id for run in rows}
    return Compared(
        runs=facts,
        baseline=next((f for f in facts if base is not None and f.run.pk == base.pk), None),
        unread=tuple(n for n in asked if n and find(n) is None),
        offered=tuple(
            Run.objects.filter(investigation__in=own)
            .exclude(pk__in=[run.pk for run in rows])
            .select_related("investigation")
            .only("number", "title", "investigation__slug", "investigation__title")
            .order_by("-pk")[:MOST_OFFERED]
        ),
        spread=_spread(own),
    )


def _runs(keys: Sequence[tuple[str, int]]) -> list[Run]:
    wanted = Q(pk__in=[])
    numbers = grouped(keys[: 4 * MOST], lambda key: key[0])
    for slug, named in numbers.items():
        wanted |= Q(investigation__slug=slug, number__in=[number for _, number in named])
    return list(Run.objects.filter(wanted).select_related("investigation").defer("server_info"))


_REPEATS = Prepared(lambda *runs: Repeat.objects.filter(run__pk__in=runs))
_CONFIG = Prepared(lambda *runs: ConfigEntry.objects.filter(run__pk__in=runs))
_CHANGES = Prepared(lambda *runs: ConfigChange.objects.filter(run__pk__in=runs))


def _facts(rows: Sequence[Run], base: Run | None) -> tuple[RunFacts, ...]:
    if not rows:
        return ()
    ids = [run.pk for run in rows]
    repeats = grouped(_REPEATS.all(*ids), lambda r: r.run_id)
    config = grouped(_CONFIG.all(*ids), lambda c: c.run_id)
    changes = grouped(_CHANGES.all(*ids), lambda c: c.run_id)
    figures = {run.pk: figures_of(repeats.get(run.pk, [])) for run in rows}
    against = ratios(rows, figures, base.pk if base is not None else None)
    return tuple(
        RunFacts(
            run=run,
            figures=figures[run.pk],
            repeats=tuple(repeats.get(run.pk, ())),
            config={entry.key: entry for entry in config.get(run.pk, ())},
            changes=tuple(changes.get(run.pk, ())),
            verdict=None,
            ratio=against[run.pk],
            is_baseline=base is not None and run.pk == base.pk,
        )
        for run in rows
    )


def _spread(investigations: set[int]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    rows = Repeat.objects.filter(
        run__investigation__in=investigations, run__state=Run.State.DONE, tok_s__gt=0
    ).values_list("run_id", "run__engine", "tok_s")
    return tuple(
        (some[0][1], tuple(value for _, _, value in some))
        for some in grouped(rows.iterator(), lambda row: row[0]).values()
        if len(some) > 1
    )
