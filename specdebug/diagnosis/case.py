"""The two ways to a Case, from files and from rows, in one place; the shapes are in facts.py."""

from specdebug.diagnosis.facts import (
    Boot,
    Case,
    ConfigFile,
    Fact,
    Feature,
    Input,
    InputSummary,
    Launch,
    Measured,
    Notice,
    Positions,
    ServerState,
    Stretch,
    Training,
    case_from_rows,
)
from specdebug.diagnosis.gather import build_case

__all__ = [
    "Boot",
    "Case",
    "ConfigFile",
    "Fact",
    "Feature",
    "Input",
    "InputSummary",
    "Launch",
    "Measured",
    "Notice",
    "Positions",
    "ServerState",
    "Stretch",
    "Training",
    "build_case",
    "case_from_rows",
]
