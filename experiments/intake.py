"""What comes in from outside: a worker's outcome and people's files, turned into rows once.

What the files mean is decided by the library; what follows from the rows by `checkup`.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from django.db import transaction

from experiments import (
    arguments,
    bulk,
    checkup,
    evidence,
    gpu_figures,
    outcomes,
    summaries,
    webhooks,
)
from experiments.arguments import Effective, Setting
from experiments.claims import finish_run
from experiments.models import (
    ConfigEntry,
    Evidence,
    Investigation,
    Repeat,
    Run,
)
from experiments.outcomes import moment
from experiments.refusal import ClaimLost, Refused
from specdebug.eagle.draft_config import TargetConfig
from specdebug.sglang import server_info
from specdebug.sglang.logs import ServerLog, read_log
from workers import plan

log = logging.getLogger(__name__)

UPLOAD_LIMIT = 1 << 30


@dataclass(frozen=True)
class Taken:
    """What became of an outcome. fresh: False when the same outcome had been taken before."""

    run: Run
    fresh: bool


@dataclass(frozen=True)
class _Read:
    """What was read out of an outcome before the first row is written."""

    log: ServerLog | None
    problem: str
    effective: Effective | None
    draft_config: Mapping[str, Any] | None
    target_config: Mapping[str, Any] | None
    release: str


def take_outcome(run_id: int, *, token: str, outcome: plan.RunOutcome) -> Taken:
    """Save what a worker measured, in one transaction; safe to call again with the same outcome.

    Raises ClaimLost when `token` no longer holds the run. Findings and verdicts are drawn
    afterwards: should that fail, the figures are kept and the run says why.
    """
    run = Run.objects.select_related("investigation", "hypothesis").filter(pk=run_id).first()
    if run is None:
        raise ClaimLost(f"there is no run {run_id} any more")
    if _taken_before(run, token, outcome):
        if run.checked_at is None:
            draw_conclusions(run)
        return Taken(run, fresh=False)
    if run.state != Run.State.RUNNING or run.claim != token:
        raise _lost(run)
    read = _read(outcome)
    # Files before rows: content is kept by hash, so that a transaction that fails leaves no harm,
    # and the database is not locked while a long log is copied.
    files: list[Evidence] = []
    try:
        files = _keep_files(run, outcome, read)
    except Refused as no:
        # The figures are worth more than the files, which still lie in the run's folder.
        problem = f"its files were not kept: {no}"
        read = replace(read, problem="; ".join(filter(None, (read.problem, problem))))
    with transaction.atomic():
        if not finish_run(run.pk, token=token, state=outcome.state, values=_columns(outcome, read)):
            run.refresh_from_db()
            raise _lost(run)
        _save_rows(run, outcome, read)
        for row in files:
            row.save(force_insert=True)
    run.refresh_from_db()
    draw_conclusions(run)
    webhooks.announce_run(run)
    return Taken(run, fresh=True)


def _taken_before(run: Run, token: str, outcome: plan.RunOutcome) -> bool:
    return (
        run.claim == token
        and run.state in Run.ENDED
        and run.state == outcome.state
        and run.ended_at == moment(outcome.ended_at)
    )


def _lost(run: Run) -> ClaimLost:
    return ClaimLost(
        f"{run.label} of {run.investigation.slug} is {run.get_state_display()} and no longer held "
        "by this worker; its outcome is not taken"
    )


def _columns(outcome: plan.RunOutcome, read: _Read) -> dict[str, Any]:
    reason = outcome.reason
    if read.problem:
        reason = f"{reason} ({read.problem})" if reason else read.problem
    return {
        "phase": outcome.phase,
        "phase_detail": "",
        "fraction": 1.0 if outcome.state == "done" else None,
        "reason": reason,
        "host": outcome.host[:200],
        "argv": list(outcome.argv),
        "env": dict(outcome.env),
        "versions": dict(outcome.versions),
        "server_info": arguments.without_secrets(outcome.server_info),
        "exit_code": outcome.exit.code if outcome.exit else None,
        "ready_at": moment(outcome.ready_at),
        "ended_at": moment(outcome.ended_at),
        "engine_release": read.release[:40],
        "preflight": outcome.preflight,
        "provenance": dict(outcome.provenance),
        "gpus": gpu_figures.summary_of(outcome),
        "accept_lengths": outcomes.lengths(outcome),
    }


def _read(outcome: plan.RunOutcome) -> _Read:
    found: ServerLog | None = None
    problem = ""
    if outcome.log:
        try:
            found = read_log(outcome.log, "server.log")
        except (OSError, ValueError) as error:
            problem = f"the log could not be read: {error}"
    effective, release = _effective(outcome.server_info, found)
    args: Mapping[str, Any] = effective.args if effective else {}
    release = release or outcome.versions.get("engine", "")
    return _Read(
        log=found,
        problem=problem,
        effective=effective,
        draft_config=_config_file(args.get("speculative_draft_model_path")),
        target_config=_config_file(args.get("model_path")),
        release=release,
    )


def _effective(
    info: Mapping[str, Any] | None, found: ServerLog | None
) -> tuple[Effective | None, str]:
    """Arguments in force: as the running server said, else as its log lists them."""
    boot = found.boots[-1] if found and found.boots else None
    logged = str(boot.release) if boot and boot.release else ""
    if info:
        said = server_info.from_mapping(info)
        if said.args:
            release = str(said.release) if said.release else logged
            return Effective(said.args, "server_info"), release
    if boot is not None and boot.server_args is not None:
        return Effective(boot.server_args, "server.log", boot.server_args_line), logged
    return None, logged


def _config_file(folder: Any) -> dict[str, Any] | None:
    """The config.json of a model folder on this machine; None for a hub name or a broken file."""
    if not isinstance(folder, str) or not folder:
        return None
    path = Path(folder) / "config.json"
    try:
        if not path.is_file() or path.stat().st_size > evidence.LARGEST_CONFIG:
            return None
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _keep_files(run: Run, outcome: plan.RunOutcome, read: _Read) -> list[Evidence]:
    """Unsaved rows for the log, the server's answers and the models' configs."""
    rows: list[Evidence] = []
    if outcome.log and Path(outcome.log).is_file():
        with Path(outcome.log).open("rb") as stream:
            row = evidence.unsaved(run, "server.log", evidence.SERVER_LOG, stream)
        row.problem = read.problem
        rows.append(row)
    texts = [
        (
            "server_info.json",
            evidence.SERVER_INFO,
            _as_json(arguments.without_secrets(outcome.server_info)),
        ),
        ("metrics.txt", evidence.METRICS, outcome.metrics_text),
        ("draft-config.json", evidence.DRAFT_CONFIG, _as_json(read.draft_config)),
        ("target-config.json", evidence.TARGET_CONFIG, _as_json(read.target_config)),
    ]
    for name, kind, text in texts:
        if text:
            rows.append(evidence.unsaved(run, name, kind, io.BytesIO(text.encode())))
    for name, kind in outcome.files:
        # A name, not a path: what is kept lies in the run's own folder.
        path = Path(outcome.folder) / Path(name).name
        if outcome.folder and path.is_file() and not path.is_symlink():
            with path.open("rb") as stream:
                rows.append(evidence.unsaved(run, path.name, kind, stream))
    for row in rows:
        row.added_by = "worker"
    return rows


def _as_json(data: Mapping[str, Any] | None) -> str:
    return evidence.as_json(data) if data else ""


def _save_rows(run: Run, outcome: plan.RunOutcome, read: _Read) -> None:
    repeats = [outcomes.repeat_row(run, repeat) for repeat in outcome.repeats]
    Repeat.objects.bulk_create(repeats)
    summaries.from_repeats(run)
    requested = arguments.requested_of(run.plan.get("server_args", []))
    if run.by_script:  # its parameters may be named by the program alone
        requested |= {e.key: e.requested for e in run.config.all() if e.was_requested}
    target = TargetConfig.from_dict(read.target_config) if read.target_config else None
    ConfigEntry.objects.filter(run=run).delete()  # what was predicted before the run
    bulk.insert(
        arguments.entries(
            run,
            requested,
            read.effective,
            release=arguments.release_of(read.release),
            target=target,
            env=run.plan.get("env", {}),
        )
    )
    bulk.insert(outcomes.samples(run, outcome, read.log))
    _save_changes(run, outcome, read)


def _save_changes(run: Run, outcome: plan.RunOutcome, read: _Read) -> None:
    other = run.follows or run.baseline or run.investigation.baseline
    if other is None or other.pk == run.pk:
        return
    after = Setting(
        args=read.effective.args if read.effective else {},
        env=run.plan.get("env", {}),
        versions=dict(outcome.versions),
        draft_config=read.draft_config,
    )
    before = _setting_of(other)
    if not before.args or not after.args:
        before = Setting({}, before.env, before.versions, before.draft_config)
        after = Setting({}, after.env, after.versions, after.draft_config)
    bulk.insert(arguments.changes(run, before, after))


def _setting_of(run: Run) -> Setting:
    args: Mapping[str, Any] = {}
    if run.server_info:
        args = server_info.from_mapping(run.server_info).args
    if not args:
        args = {e.key: e.effective for e in run.config.all() if e.effective_known}
    kept = list(Evidence.objects.filter(run=run).select_related("blob"))
    draft = evidence.json_of(evidence.newest(kept, evidence.DRAFT_CONFIG))
    return Setting(args, run.plan.get("env", {}), run.versions, draft)


def draw_conclusions(run: Run) -> None:
    """Findings and verdicts of an ended run; a failure of ours is kept with the run, not raised."""
    if _nothing_to_judge(run):
        Run.objects.filter(pk=run.pk).update(checked_at=run.ended_at)
        run.refresh_from_db()
        return
    try:
        with transaction.atomic():
            checkup.recheck(run)
            run.refresh_from_db()
            for alert in checkup.alarms(run):
                webhooks.announce_alert(alert)
    except Exception as error:
        # The figures are saved by now. Losing them, or a worker's loop, to a rule that stumbles
        # would be worse than saying so on the run's page.
        log.exception("no findings for run %s", run.pk)
        Run.objects.filter(pk=run.pk).update(check_problem=f"{type(error).__name__}: {error}")
    run.refresh_from_db()


def _nothing_to_judge(run: Run) -> bool:
    """Whether a program sent points alone: no figure, no file, no argument that a rule knows."""
    return (
        run.by_script
        and run.hypothesis_id is None
        and not run.argv
        and not run.repeats.exists()
        and not run.evidence.exists()
        and not run.config.filter(key__startswith="speculative_").exists()
    )


def take_file(
    *,
    investigation: Investigation,
    name: str,
    stream: IO[bytes],
    run: Run | None = None,
    by: str = "",
    limit: int = UPLOAD_LIMIT,
) -> Evidence:
    """Keep a person's file and look again with it; its kind is told from its content.

    Raises Refused above `limit` bytes. A file of no known kind is kept with the reason.
    """
    row = evidence.add(
        investigation=investigation, run=run, name=name, stream=stream, by=by, limit=limit
    )
    if run is not None:
        if run.state in Run.ENDED:
            draw_conclusions(run)
        return row
    with transaction.atomic():
        checkup.recheck_files(investigation)
    return row
