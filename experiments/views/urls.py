"""The pages' addresses. Names are fixed: templates, models and commands reverse them."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from experiments.views import (
    compare,
    evidence,
    findings,
    home,
    hypotheses,
    investigations,
    reports,
    runs,
    session,
)

urlpatterns = [
    path("", home.home, name="home"),
    path("login/", session.Login.as_view(), name="login"),
    path("login/link/<str:token>/", session.login_link, name="login-link"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("healthz", session.healthz, name="healthz"),
    path("compare/", compare.compare, name="compare"),
    path("compare/<slug:name>.<slug:form>", compare.plot, name="compare-plot"),
    path("new/", investigations.create, name="investigation-new"),
    path("i/<slug:slug>/", investigations.investigation, name="investigation"),
    path("i/<slug:slug>/edit/", investigations.edit, name="investigation-edit"),
    path("i/<slug:slug>/close/", investigations.close, name="investigation-close"),
    path("i/<slug:slug>/reopen/", investigations.reopen, name="investigation-reopen"),
    path("i/<slug:slug>/event/", investigations.add_event, name="event-new"),
    path("i/<slug:slug>/hypothesis/", hypotheses.create, name="hypothesis-new"),
    path("i/<slug:slug>/h/<int:number>/", hypotheses.hypothesis, name="hypothesis"),
    path("i/<slug:slug>/run/", runs.create, name="run-new"),
    path("i/<slug:slug>/r/<int:number>/", runs.run, name="run"),
    path("i/<slug:slug>/r/<int:number>/live/", runs.live, name="run-live"),
    path("i/<slug:slug>/r/<int:number>/log/", evidence.run_log, name="run-log"),
    path("i/<slug:slug>/r/<int:number>/cancel/", runs.cancel, name="run-cancel"),
    path("i/<slug:slug>/r/<int:number>/repeat/", runs.repeat, name="run-repeat"),
    path("i/<slug:slug>/r/<int:number>/queue/", runs.queue, name="run-queue"),
    path("i/<slug:slug>/r/<int:number>/branch/", runs.branch, name="run-branch"),
    path("i/<slug:slug>/r/<int:number>/<str:metric>.json", runs.chart, name="run-chart"),
    path("i/<slug:slug>/r/<int:number>/<str:metric>.svg", runs.chart_svg, name="run-chart-svg"),
    path("i/<slug:slug>/r/<int:number>/file/", evidence.add, name="run-file-new"),
    path("i/<slug:slug>/file/", evidence.add, name="file-new"),
    path("i/<slug:slug>/f/<int:pk>/", findings.finding, name="finding"),
    path("i/<slug:slug>/f/<int:pk>/aside/", findings.set_aside, name="finding-aside"),
    path("i/<slug:slug>/f/<int:pk>/reopen/", findings.reopen, name="finding-reopen"),
    path("i/<slug:slug>/evidence/<int:pk>/", evidence.text, name="evidence"),
    path("i/<slug:slug>/evidence/<int:pk>/file/", evidence.download, name="evidence-file"),
    path("i/<slug:slug>/report/", reports.page, name="report-page"),
    path("i/<slug:slug>/report.pdf", reports.pdf, name="report-pdf"),
]
