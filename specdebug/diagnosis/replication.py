"""What the record's comparisons can carry where figures are single; it compares nothing itself."""

from __future__ import annotations

from dataclasses import replace

from specdebug.diagnosis.insights import Insight
from specdebug.diagnosis.record import Record
from specdebug.diagnosis.timeline import Regression, regressions

__all__ = ["replication"]


def replication(
    record: Record, compared: tuple[Regression, ...], assumed_cv: float
) -> tuple[Insight, ...]:
    """Which comparisons stand although figures are single, and the regressions among all."""
    single = [c for c in compared if c.unreplicated]
    out: list[Insight] = []
    pairs = list(compared)
    spec = [
        r
        for r in sorted(record.runs, key=lambda r: r.order)
        if r.figures.speculative is not False and r.figures.tok_s
    ]
    if len(spec) > 2:
        extra = replace(record, runs=(spec[0], replace(spec[-1], follows=spec[0].label)))
        known = {(c.run, c.against) for c in pairs}
        added = [c for c in regressions(extra, assumed_cv) if (c.run, c.against) not in known]
        pairs += added
        single += [c for c in added if c.unreplicated]
    if single:
        said = "; ".join(
            f"{c.run} against {c.against} {c.change_percent:+.1f} %: {c.verdict}" for c in single
        )
        out.append(
            Insight(
                "replication",
                "What single figures can carry",
                f"Figures are unreplicated. With a run-to-run spread of {100 * assumed_cv:.0f} % "
                f"taken for granted: {said}.",
            )
        )
    flagged = [c for c in pairs if c.flagged]
    if flagged:
        said = "; ".join(
            f"{c.run} against {c.against} {c.change_percent:+.1f} % ({c.cause})" for c in flagged
        )
        out.append(Insight("regressions", "Regressions", said + "."))
    return tuple(out)
