"""Reads of the record: a function per page, each with a fixed number of queries; writes nothing."""

from experiments.queries.dossier import (
    Dossier,
    FindingFacts,
    HypothesisFacts,
    RunFacts,
    dossier,
)
from experiments.queries.figures import (
    Figure,
    Figures,
    figures_in_words,
    figures_of,
    outputs_equal,
)
from experiments.queries.goal import Goal, closing_obstacles, goal_of
from experiments.queries.home import Home, HomeRow, home
from experiments.queries.pages import (
    FindingPage,
    HypothesisPage,
    InvestigationPage,
    RunLive,
    RunPage,
    finding_page,
    hypothesis_page,
    investigation_page,
    run_live,
    run_page,
)

__all__ = [
    "Dossier",
    "Figure",
    "Figures",
    "FindingFacts",
    "FindingPage",
    "Goal",
    "Home",
    "HomeRow",
    "HypothesisFacts",
    "HypothesisPage",
    "InvestigationPage",
    "RunFacts",
    "RunLive",
    "RunPage",
    "closing_obstacles",
    "dossier",
    "figures_in_words",
    "figures_of",
    "finding_page",
    "goal_of",
    "home",
    "hypothesis_page",
    "investigation_page",
    "outputs_equal",
    "run_live",
    "run_page",
]
