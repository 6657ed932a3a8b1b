"""The API's addresses, all under /api/v1/; docs/api.md says what becomes of old versions."""

from django.contrib.auth.decorators import login_not_required
from django.urls import path, re_path, register_converter
from django.urls.converters import SlugConverter
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from experiments.api import (
    accounts,
    advice,
    archives,
    checks,
    conclusions,
    events,
    evidence,
    findings,
    hypotheses,
    investigations,
    measurements,
    nowhere,
    prometheus,
    runs,
    searching,
    sweeps,
    webhooks,
    workers,
)


class Number:
    """R and H numbers: up to nine digits, so that no database stumbles over one."""

    regex = "[0-9]{1,9}"

    def to_python(self, value: str) -> int:
        return int(value)

    def to_url(self, value: int) -> str:
        return str(value)


class Code(SlugConverter):
    """A finding's code."""

    regex = "[-a-z0-9]{1,60}"


register_converter(Number, "number")
register_converter(Code, "code")

ONE = "investigations/<slug:slug>"
RUN = f"{ONE}/runs/<number:number>"
HYPOTHESIS = f"{ONE}/hypotheses/<number:number>"
SWEEP = f"{ONE}/sweeps/<number:number>"
FINDING = f"{ONE}/findings/<code:code>"

v1 = [
    path("me", accounts.Me.as_view()),
    path("tokens", accounts.MyTokens.as_view()),
    path("tokens/<number:pk>", accounts.OneToken.as_view()),
    path("people", accounts.AllPeople.as_view()),
    path("people/<str:username>", accounts.OnePerson.as_view()),
    path("check", checks.Check.as_view()),
    path("preflight", checks.Preflight.as_view()),
    path("search", searching.Search.as_view()),
    path("compare", conclusions.Compare.as_view()),
    path("workers", workers.Workers.as_view()),
    path("import", archives.Import.as_view()),
    path("runs", runs.AllRuns.as_view()),
    path("findings", findings.AllFindings.as_view()),
    path("blobs/<str:sha256>", evidence.OneBlob.as_view()),
    path("blobs/<str:sha256>/content", evidence.BlobContent.as_view()),
    path("webhooks", webhooks.AllWebhooks.as_view()),
    path("webhooks/<number:pk>", webhooks.OneWebhook.as_view()),
    path("webhooks/<number:pk>/ping", webhooks.Ping.as_view()),
    path("webhooks/<number:pk>/deliveries", webhooks.DeliveriesOf.as_view()),
    path("investigations", investigations.Investigations.as_view()),
    path(ONE, investigations.OneInvestigation.as_view()),
    path(f"{ONE}/standing", investigations.StandingOf.as_view()),
    path(f"{ONE}/resolve", investigations.Resolve.as_view()),
    path(f"{ONE}/abandon", investigations.Abandon.as_view()),
    path(f"{ONE}/reopen", investigations.Reopen.as_view()),
    path(f"{ONE}/hypotheses", hypotheses.Hypotheses.as_view()),
    path(HYPOTHESIS, hypotheses.OneHypothesis.as_view()),
    path(f"{HYPOTHESIS}/predictions", hypotheses.Predictions.as_view()),
    path(f"{HYPOTHESIS}/checks", hypotheses.Checks.as_view()),
    path(f"{HYPOTHESIS}/links", hypotheses.Links.as_view()),
    path(f"{HYPOTHESIS}/overrule", hypotheses.Overrule.as_view()),
    path(f"{ONE}/verdicts", hypotheses.Verdicts.as_view()),
    path(f"{ONE}/events", events.Events.as_view()),
    path(f"{ONE}/findings", findings.Findings.as_view()),
    path(FINDING, findings.OneFinding.as_view()),
    path(f"{FINDING}/set-aside", findings.SetAside.as_view()),
    path(f"{FINDING}/reopen", findings.ReopenFinding.as_view()),
    path(f"{ONE}/evidence", evidence.InvestigationEvidence.as_view()),
    path(f"{ONE}/files", evidence.InvestigationFile.as_view()),
    path(f"{ONE}/files/known", evidence.KnownInvestigationFile.as_view()),
    path(f"{ONE}/timeline", conclusions.Timeline.as_view()),
    path(f"{ONE}/gap", conclusions.Gap.as_view()),
    path(f"{ONE}/advice", advice.Advice.as_view()),
    path(f"{ONE}/advice/<code:key>/take", advice.TakeAdvice.as_view()),
    path(f"{ONE}/regressions", conclusions.Regressions.as_view()),
    path(f"{ONE}/report", conclusions.Report.as_view()),
    path(f"{ONE}/report.pdf", conclusions.ReportPdf.as_view()),
    path(f"{ONE}/archive", archives.Archive.as_view()),
    path(f"{ONE}/runs.csv", archives.RunsCsv.as_view()),
    path(f"{ONE}/runs", runs.Runs.as_view()),
    path(f"{ONE}/sweeps", sweeps.Sweeps.as_view()),
    path(SWEEP, sweeps.OneSweep.as_view()),
    path(f"{SWEEP}/stop", sweeps.StopSweep.as_view()),
    path(f"{SWEEP}/resume", sweeps.ResumeSweep.as_view()),
    path(f"{ONE}/script-runs", runs.ScriptRuns.as_view()),
    path(f"{ONE}/recorded-runs", runs.RecordedRuns.as_view()),
    path(RUN, runs.OneRun.as_view()),
    path(f"{RUN}/standing", runs.StandingOf.as_view()),
    path(f"{RUN}/queue", runs.Queue.as_view()),
    path(f"{RUN}/cancel", runs.Cancel.as_view()),
    path(f"{RUN}/repeat", runs.Repeat.as_view()),
    path(f"{RUN}/branch", runs.Branch.as_view()),
    path(f"{RUN}/repeats", runs.Repeats.as_view()),
    path(f"{RUN}/finish", runs.FinishRun.as_view()),
    path(f"{RUN}/points", measurements.Points.as_view()),
    path(f"{RUN}/progress", measurements.Progress.as_view()),
    path(f"{RUN}/log", measurements.Log.as_view()),
    path(f"{RUN}/log/offset", measurements.LogOffset.as_view()),
    path(f"{RUN}/files", evidence.RunFile.as_view()),
    path(f"{RUN}/files/known", evidence.KnownRunFile.as_view()),
]

urlpatterns = [
    *(path(f"api/v1/{p.pattern}", p.callback) for p in v1),
    path("api/v1/openapi", login_not_required(SpectacularAPIView.as_view()), name="openapi"),
    # What is no address of the API is told in its own form.
    re_path(r"^api/v1/.*$", nowhere.Nowhere.as_view()),
    path("api/", SpectacularSwaggerSplitView.as_view(url_name="openapi"), name="api-docs"),
    path("metrics", prometheus.Metrics.as_view(), name="metrics"),
]
