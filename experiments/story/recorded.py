"""Loads the Kimi-K2.5 investigation as it was recorded; its findings come from the library."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction

from experiments import arguments, bulk, checkup, evidence, lifecycle
from experiments.arguments import Effective
from experiments.models import ConfigChange, ConfigEntry, Event, Hypothesis, Investigation, Run
from specdebug.eagle.draft_config import TargetConfig

FILE = Path(__file__).with_name("kimi_k25.json")


def load_story() -> Investigation:
    """The recorded investigation, made when it is not there yet; calling again changes nothing."""
    story: dict[str, Any] = json.loads(FILE.read_text())
    known = Investigation.objects.filter(source=story["source"]).first()
    if known is not None:
        return known
    try:
        with transaction.atomic():
            return _Loader(story).load()
    except IntegrityError:  # another process was quicker
        return Investigation.objects.get(source=story["source"])


class _Loader:
    """One pass over the file; labels like "R1" and "H1" name the rows made so far."""

    def __init__(self, story: dict[str, Any]) -> None:
        self.story = story
        self.target = TargetConfig.from_dict(story["target_config"])
        self.runs: dict[str, Run] = {}
        self.hypotheses: dict[str, Hypothesis] = {}

    def load(self) -> Investigation:
        story, goal = self.story, self.story["goal"]
        self.investigation = lifecycle.create_investigation(
            title=story["title"],
            question=story["question"],
            context=story["context"],
            goal_metric=goal["metric"],
            goal_kind=goal["kind"],
            goal_value=goal["value"],
            notes=story["notes"],
            source=story["source"],
        )
        for step in story["timeline"]:
            if "run" in step and "event" not in step:
                self._run(step)
            elif "hypothesis" in step and "event" not in step:
                self._hypothesis(step)
            else:
                self._event(step)
        for run in self.runs.values():
            checkup.recheck(run)
        self.investigation.refresh_from_db()
        return self.investigation

    def _event(self, step: dict[str, Any]) -> Event:
        return lifecycle.add_event(
            investigation=self.investigation,
            kind=step["event"],
            title=step["title"],
            text=step["text"],
            run=self.runs.get(step.get("run", "")),
            hypothesis=self.hypotheses.get(step.get("hypothesis", "")),
        )

    def _hypothesis(self, step: dict[str, Any]) -> None:
        row = lifecycle.add_hypothesis(
            investigation=self.investigation,
            claim=step["claim"],
            mechanism=step["mechanism"],
            recorded=True,
            links=[(k["kind"], self.hypotheses[k["other"]]) for k in step.get("links", ())],
        )
        self.hypotheses[step["hypothesis"]] = row
        if prediction := step.get("prediction"):
            lifecycle.register_prediction(
                hypothesis=row,
                metric=prediction["metric"],
                baseline=self.runs[prediction["baseline"]],
                direction=prediction["direction"],
            )
        for check in step.get("checks", ()):
            lifecycle.add_applied_check(hypothesis=row, **check)

    def _run(self, step: dict[str, Any]) -> None:
        follows = self.runs.get(step.get("follows", ""))
        run = lifecycle.record_run(
            investigation=self.investigation,
            title=step["title"],
            repeats=[
                lifecycle.RecordedRepeat(
                    step["tok_s"], step.get("accept_len"), step.get("accept_rate")
                )
            ],
            engine="sglang",
            engine_release=self.story["notes"]["engine_version"],
            server_args=step["args"],
            hypothesis=self.hypotheses.get(step.get("hypothesis", "")),
            baseline=self.runs.get("R0"),
            follows=follows,
            note=step.get("note", ""),
        )
        self.runs[step["run"]] = run
        if len(self.runs) == 1:
            lifecycle.edit_investigation(self.investigation, baseline=run)
        entries = arguments.entries(
            run,
            arguments.requested_of(step["args"]),
            Effective(step["effective"], "write-up"),
            release=arguments.release_of(run.engine_release),
            target=self.target,
        )
        if not step["args"]:
            for entry in entries:
                entry.origin, entry.why = ConfigEntry.Origin.UNKNOWN, "what was asked is not stated"
        bulk.insert(entries)
        self._changes(run, step, follows)
        self._config(run, "target-config.json", evidence.TARGET_CONFIG, self.story["target_config"])
        if name := step.get("draft_config"):
            self._config(
                run, "draft-config.json", evidence.DRAFT_CONFIG, self.story["draft_configs"][name]
            )

    def _config(self, run: Run, name: str, kind: str, data: dict[str, Any]) -> None:
        evidence.add(
            investigation=self.investigation,
            run=run,
            name=name,
            kind=kind,
            stream=io.BytesIO(evidence.as_json(data).encode()),
        )

    def _changes(self, run: Run, step: dict[str, Any], follows: Run | None) -> None:
        stated = step.get("changes")
        if stated is not None:
            bulk.insert(ConfigChange(run=run, **change) for change in stated)
        elif follows is not None:
            before = {e.key: e.effective for e in follows.config.all() if e.effective_known}
            bulk.insert(
                ConfigChange(run=run, kind=ConfigChange.Kind.ARGUMENT, key=k, before=a, after=b)
                for k, a, b in arguments.difference(before, step["effective"])
            )
