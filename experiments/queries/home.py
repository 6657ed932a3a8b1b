"""The first page: investigations page by page, what runs now, what got worse, what is open, and the
hosts; a fixed number of queries over a record of any size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.core.paginator import Page, Paginator
from django.db.models import Count
from django.utils import timezone

from experiments.models import (
    Alert,
    ConfigEntry,
    Finding,
    FindingEvent,
    Investigation,
    Repeat,
    Run,
    Worker,
)
from experiments.queries.comparable import ratios
from experiments.queries.dossier import SPECULATIVE, RunFacts, grouped
from experiments.queries.figures import Figures, figures_of
from experiments.queries.goal import Goal, goal_of
from experiments.queries.prepared import Prepared
from specdebug.diagnosis.catalogue import CATALOGUE

PER_PAGE = 10
RECENT = timedelta(days=14)
MOST_WORSE = 6
MOST_HOSTS = 20
# A worker beats every few seconds; one that was silent for this long is shown as silent.
SILENT = timedelta(seconds=60)
COSTS = tuple(code for code, entry in CATALOGUE.items() if entry.family == "cost")


@dataclass(frozen=True)
class HomeRow:
    """One investigation in the list. open_findings: severity -> how many are open."""

    investigation: Investigation
    goal: Goal
    runs: int
    active: tuple[Run, ...]
    open_findings: Mapping[str, int]


@dataclass(frozen=True)
class Host:
    """A machine that measures. gpus: how many it may lease, None: not known."""

    worker: Worker
    alive: bool
    gpus: int | None


@dataclass(frozen=True)
class Home:
    """rows: the investigations of this page, last changed first; active: runs that wait or run now.

    worse: cost findings opened or reopened within `RECENT`; alerts: regressions of watched series
    that nobody has closed; open_bugs: severity -> open findings of
    all investigations; states: state -> how many investigations.
    """

    rows: tuple[HomeRow, ...]
    page: Page[Investigation]
    state: str
    states: Mapping[str, int]
    active: tuple[Run, ...]
    worse: tuple[FindingEvent, ...]
    alerts: tuple[Alert, ...]
    open_bugs: Mapping[str, int]
    hosts: tuple[Host, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing at all is recorded."""
        return not any(self.states.values())


_ALERTS = Prepared(
    lambda: (
        Alert.objects.filter(closed_at=None, kind=Alert.Kind.REGRESSION)
        .select_related("series", "run__investigation")
        .defer("run__server_info", "run__shown", "run__investigation__context")[:MOST_WORSE]
    )
)


def home(state: str = Investigation.State.OPEN, page: str = "1") -> Home:
    """The first page; `state`: of the investigations listed, any other word means all."""
    chosen = Investigation.objects.defer("context", "notes", "shown")
    if state in Investigation.State.values:
        chosen = chosen.filter(state=state)
    else:
        state = "all"
    shown = Paginator(chosen.order_by("-updated_at", "-pk"), PER_PAGE).get_page(page)
    states = dict(Investigation.objects.order_by().values_list("state").annotate(Count("pk")))
    return Home(
        rows=_rows(list(shown)),
        page=shown,
        state=state,
        states=states,
        active=active_runs(),
        worse=_worse(timezone.now()),
        alerts=tuple(_ALERTS.all()),
        open_bugs=dict(
            Finding.objects.filter(state=Finding.State.OPEN)
            .order_by()
            .values_list("severity")
            .annotate(Count("pk"))
        ),
        hosts=_hosts(timezone.now()),
    )


_ACTIVE = Prepared(
    lambda: (
        Run.objects.filter(state__in=Run.ACTIVE)
        .select_related("investigation")
        .defer("server_info", "argv", "env", "shown", "untried")
    )
)


def active_runs() -> tuple[Run, ...]:
    """What runs now, then what waits, in the order it was queued."""
    return tuple(
        sorted(
            _ACTIVE.all(), key=lambda r: (r.state != Run.State.RUNNING, r.queued_at or r.created_at)
        )
    )


# Of the investigations of a page.
_RUNS = Prepared(
    lambda *of: Run.objects.filter(investigation__pk__in=of).only(
        *("number", "title", "state", "engine", "recorded", "plan", "position", "host"),
        "investigation",
    )
)
_BUGS = Prepared(
    lambda *of: (
        Finding.objects.filter(investigation__pk__in=of, state=Finding.State.OPEN)
        .only("investigation", "severity")
        .order_by()
    )
)
_REPEATS = Prepared(lambda *of: Repeat.objects.filter(run__investigation__pk__in=of).order_by())


def _rows(investigations: Sequence[Investigation]) -> tuple[HomeRow, ...]:
    if not investigations:
        return ()
    keys = [row.pk for row in investigations]
    runs = _RUNS.all(*keys)
    by_pk = {row.pk: row for row in investigations}
    for run in runs:
        run.investigation = by_pk[run.investigation_id]
    repeats = grouped(_REPEATS.all(*keys), lambda r: r.run_id)
    # By run, not by investigation: SQLite would read this argument of all runs there are.
    entries = ConfigEntry.objects.filter(run__in=[run.pk for run in runs], key=SPECULATIVE)
    config = grouped(entries, lambda entry: entry.run_id)
    open_: dict[int, Counter[str]] = {}
    for bug in _BUGS.all(*keys):
        open_.setdefault(bug.investigation_id, Counter())[bug.severity] += 1
    figures = {run.pk: figures_of(repeats.get(run.pk, [])) for run in runs}
    owned = grouped(runs, lambda run: run.investigation_id)
    return tuple(
        HomeRow(
            investigation=row,
            goal=goal_of(row, _facts(row, owned.get(row.pk, []), figures, repeats, config)),
            runs=len(owned.get(row.pk, [])),
            active=tuple(run for run in owned.get(row.pk, []) if run.state in Run.ACTIVE),
            open_findings=open_.get(row.pk, Counter()),
        )
        for row in investigations
    )


def _facts(
    row: Investigation,
    runs: Sequence[Run],
    figures: Mapping[int, Figures],
    repeats: Mapping[int, Sequence[Repeat]],
    config: Mapping[int, Sequence[ConfigEntry]],
) -> list[RunFacts]:
    against = ratios(runs, figures, row.baseline_id)
    return [
        RunFacts(
            run=run,
            figures=figures[run.pk],
            repeats=tuple(repeats.get(run.pk, ())),
            config={entry.key: entry for entry in config.get(run.pk, ())},
            changes=(),
            verdict=None,
            ratio=against[run.pk],
            is_baseline=run.pk == row.baseline_id,
        )
        for run in runs
    ]


_WORSE = Prepared(
    lambda since: (
        FindingEvent.objects.filter(
            kind__in=(FindingEvent.Kind.OPENED, FindingEvent.Kind.REOPENED),
            at__gte=since,
            finding__state=Finding.State.OPEN,
            finding__code__in=COSTS,
            finding__severity__in=(Finding.Severity.CRITICAL, Finding.Severity.HIGH),
        )
        .select_related("finding__investigation", "run")
        .only(
            *("at", "finding__code", "finding__severity", "finding__statement"),
            *("finding__investigation__slug", "finding__investigation__title", "run__number"),
        )
        .order_by("-pk")[:MOST_WORSE]
    )
)


def _worse(now: datetime) -> tuple[FindingEvent, ...]:
    """Findings of cost that were opened or came back lately and are open still, newest first."""
    return tuple(_WORSE.all(now - RECENT))


def _hosts(now: datetime) -> tuple[Host, ...]:
    return tuple(
        Host(row, now - row.heartbeat_at < SILENT, row.gpu_count) for row in _LISTENING.all()
    )


_LISTENING = Prepared(
    lambda: Worker.objects.filter(stopped_at=None).order_by("-heartbeat_at")[:MOST_HOSTS]
)
