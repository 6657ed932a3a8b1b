"""Workers: registered, routed to, refused what they cannot run, and shown."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from experiments import dispatch, lifecycle
from experiments.lifecycle import workers
from experiments.lifecycle.workers import Told
from experiments.models import Investigation, Run, Worker
from experiments.queries.workers import waits_in_vain, workers_page
from experiments.refusal import Refused

NOW = timezone.now


def register(name: str, count: int | None = 0, **values: Any) -> Worker:
    told = Told(name=name, host=name, pid=11, gpu_count=count, **values)
    workers.hear_of(told, started_at=NOW(), now=NOW())
    return Worker.objects.get(name=name)


def silent(name: str) -> None:
    Worker.objects.filter(name=name).update(heartbeat_at=NOW() - timedelta(minutes=5))


@pytest.fixture
def plan(investigation: Investigation) -> Run:
    """A queued run that takes eight GPUs."""
    run = lifecycle.add_run(
        investigation=investigation,
        title="on eight GPUs",
        engine="sglang",
        server_args=["--model-path", "m", "--tp", "8"],
    )
    dispatch.queue_run(run)
    return run


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """What was sent to which queue; every queue is empty."""
    found: list[tuple[int, str]] = []

    def send(pk: int, task: str = "", queue: str = dispatch.QUEUE) -> bool:
        found.append((pk, queue))
        return True

    monkeypatch.setattr(dispatch, "_send", send)
    monkeypatch.setattr(dispatch, "_messages_waiting", lambda queue=dispatch.QUEUE: 0)
    return found


def claim(run: Run, **values: Any) -> bool:
    return lifecycle.claim_run(run.pk, token="t", worker="w:1", **values) is not None


# ---- registration --------------------------------------------------------------------------------


def test_a_worker_that_starts_again_keeps_its_row(db: None) -> None:
    first = register("box", 2)
    workers.say_good_bye(name="box", pid=11, now=NOW())
    first.refresh_from_db()
    assert first.stopped_at is not None
    workers.hear_of(Told("box", "box", 12, gpu_count=4), started_at=NOW(), now=NOW())
    again = Worker.objects.get()
    assert (again.pk, again.pid, again.gpu_count, again.stopped_at) == (first.pk, 12, 4, None)


def test_the_good_bye_of_a_former_holder_of_the_name_changes_nothing(db: None) -> None:
    register("box")
    workers.say_good_bye(name="box", pid=99, now=NOW())
    assert Worker.objects.get().stopped_at is None


def test_only_a_worker_that_is_gone_can_be_forgotten(db: None) -> None:
    row = register("box")
    with pytest.raises(Refused, match="alive; stop it first"):
        workers.forget(row)
    silent("box")
    row.refresh_from_db()
    workers.forget(row)
    assert not Worker.objects.exists()


# ---- claiming ------------------------------------------------------------------------------------


def test_a_queued_run_knows_how_many_gpus_it_needs(plan: Run, investigation: Investigation) -> None:
    assert plan.needs_gpus == 8
    other = lifecycle.add_run(investigation=investigation, title="small", server_args=["--tp", "8"])
    dispatch.queue_run(other)
    assert other.needs_gpus == 0  # the reference engine takes none


def test_a_worker_with_too_few_gpus_leaves_the_run_to_others(plan: Run) -> None:
    assert not claim(plan, name="laptop", gpus=2)
    plan.refresh_from_db()
    assert (plan.state, plan.attempt) == ("queued", 0)
    assert claim(plan, name="big", gpus=8)


def test_where_the_number_of_gpus_is_not_known_nothing_is_refused(plan: Run) -> None:
    assert claim(plan, name="amd", gpus=None)


def test_a_worker_without_the_interpreter_leaves_the_engine_to_others(plan: Run) -> None:
    assert not claim(plan, name="box", gpus=8, lacks={"sglang": "no interpreter"})
    assert claim(plan, name="box", gpus=8, lacks={"sglang-cpu": "no interpreter"})


def test_a_plan_for_one_worker_runs_there_alone(plan: Run) -> None:
    register("big", 8)
    workers.bind(plan, "big")
    assert not claim(plan, name="other", gpus=8)
    assert claim(plan, name="big", gpus=8)


def test_a_plan_is_bound_to_a_known_worker_and_before_it_is_claimed(plan: Run) -> None:
    with pytest.raises(Refused, match="no worker 'big'; known are: none yet"):
        workers.bind(plan, "big")
    register("big", 8)
    assert claim(plan)
    with pytest.raises(Refused, match="no draft and not queued"):
        workers.bind(plan, "big")


# ---- sending -------------------------------------------------------------------------------------


def queues(run: Run) -> list[str]:
    return dispatch.queues_for(run, list(Worker.objects.all()))


def test_a_message_goes_to_all_where_all_can_run_it_and_else_to_each_that_can(plan: Run) -> None:
    assert queues(plan) == ["measure"]  # nobody has registered yet
    register("big", 8)
    assert queues(plan) == ["measure"]
    register("laptop", 0)
    assert queues(plan) == ["measure.big"]
    register("unknown", None)
    assert queues(plan) == ["measure.big", "measure.unknown"]
    workers.bind(plan, "unknown")
    assert queues(plan) == ["measure.unknown"]


def test_what_nobody_can_run_is_sent_once_somebody_can(
    plan: Run, sent: list[tuple[int, str]]
) -> None:
    register("laptop", 0)
    Run.objects.filter(pk=plan.pk).update(queued_at=NOW() - timedelta(minutes=1))
    assert dispatch.send_waiting(now=NOW()) == []
    assert sent == []
    register("big", 8)
    assert dispatch.send_waiting(now=NOW()) == [plan.pk]
    assert sent == [(plan.pk, "measure.big")]


def test_a_full_queue_of_one_worker_keeps_no_message_from_another(
    plan: Run, sent: list[tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, gpus in (("one", 8), ("two", 8), ("laptop", 0)):
        register(name, gpus)
    depth = {"measure.one": 3, "measure.two": 0}
    monkeypatch.setattr(dispatch, "_messages_waiting", depth.get)
    Run.objects.filter(pk=plan.pk).update(queued_at=NOW() - timedelta(minutes=1))
    assert dispatch.send_waiting(now=NOW()) == [plan.pk]
    assert sent == [(plan.pk, "measure.two")]


# ---- what is said --------------------------------------------------------------------------------


def said(run: Run) -> str:
    return waits_in_vain(run, list(Worker.objects.all()))


def test_a_run_that_waits_in_vain_says_what_it_needs_and_what_there_is(plan: Run) -> None:
    assert said(plan) == ""  # nobody has told of itself: it is only young
    register("laptop", 1, lacks={"sglang-cpu": "no interpreter"})
    assert said(plan) == (
        "No worker that is alive can run it: it needs the engine sglang and 8 GPUs. "
        "laptop: it has 1 GPU."
    )
    register("big", 8)
    assert said(plan) == ""
    silent("big")
    assert "big could and is not running" in said(plan)
    silent("laptop")
    assert said(plan).endswith("8 GPUs. big could and is not running.")


def test_a_run_that_is_no_longer_queued_waits_for_nothing(plan: Run) -> None:
    register("laptop", 0)
    plan.state = Run.State.RUNNING
    assert said(plan) == ""


def test_the_page_of_workers_shows_machines_leases_and_the_queue(
    plan: Run, client: Client, investigation: Investigation, django_assert_num_queries: Any
) -> None:
    gpu = {"uuid": "GPU-a", "name": "A GPU", "total_mb": 97887, "used_mb": 400, "mig": False}
    gpu |= {"problem": "", "processes": [], "lease": ""}
    rows = [
        gpu | {"index": 0},
        gpu | {"index": 1, "lease": "run story-r1 of user ann, pid 7"},
        gpu | {"index": 2, "processes": ["process 9 (python) of user <bob> holds 40,000 MB"]},
        gpu | {"index": 3, "problem": "it has fallen off the bus"},
        gpu | {"index": 4, "mig": True},
    ]
    register("big", 5, gpus=rows)
    other = lifecycle.add_run(investigation=investigation, title="now", server_args=[])
    Run.objects.filter(pk=other.pk).update(state="running", worker="big:77", phase="loading")
    with django_assert_num_queries(2):
        page = workers_page()
    assert [row.runs for row in page.workers] == [[other]]
    client.force_login(User.objects.create_user("ann"))
    text = client.get(reverse("workers")).content.decode()
    for words in (
        "leased</span> to run story-r1 of user ann, pid 7",
        "in use by others</span> process 9 (python) of user &lt;bob&gt; holds 40,000 MB",
        "it has fallen off the bus",
        "split into parts, which are not leased",
        "No worker that is alive can run it",
        "on eight GPUs",
    ):
        assert words in text, words
    piece = client.get(reverse("workers"), headers={"HX-Target": "workers"}).content.decode()
    assert "<html" not in piece
    assert "A GPU" in piece


def test_the_pages_say_so_when_there_is_no_worker_and_no_run(client: Client, db: None) -> None:
    client.force_login(User.objects.create_user("ann"))
    text = client.get(reverse("workers")).content.decode()
    assert "No worker has told of itself yet" in text
    assert "Nothing waits" in text


def test_the_page_of_a_run_says_that_it_waits_in_vain(plan: Run, client: Client) -> None:
    register("laptop", 0)
    client.force_login(User.objects.create_user("ann"))
    assert (
        "needs the engine sglang and 8 GPUs" in client.get(plan.get_absolute_url()).content.decode()
    )


def test_forgetting_over_the_page_refuses_the_living(client: Client, db: None) -> None:
    row = register("box")
    client.force_login(User.objects.create_user("ann"))
    address = reverse("worker-forget", args=[row.pk])
    assert "stop it first" in client.post(address, follow=True).content.decode()
    silent("box")
    client.post(address)
    assert not Worker.objects.exists()
    assert client.post(address).status_code == 404


def test_a_queued_run_is_given_to_one_worker_over_the_page(
    plan: Run, client: Client, sent: list[tuple[int, str]]
) -> None:
    register("big", 8)
    register("lab", 8)
    client.force_login(User.objects.create_user("ann"))
    address = reverse("run-bind", args=[plan.pk])
    register("small", 1)
    register("gone", 8)
    silent("gone")
    offered = client.get(address).content.decode()
    assert '<option value="lab">lab</option>' in offered
    assert '<option value="small">small (it has 1 GPU)</option>' in offered
    assert '<option value="gone">gone (not running)</option>' in offered
    client.post(address, {"worker": "lab"})
    plan.refresh_from_db()
    assert plan.needs_worker == "lab"
    assert sent[-1] == (plan.pk, "measure.lab")
    assert "on lab alone" in client.get(reverse("workers")).content.decode()
    refused = client.post(address, {"worker": "nobody"}, follow=True).content.decode()
    assert "there is no worker &#x27;nobody&#x27;" in refused
    client.post(address, {"worker": ""})
    plan.refresh_from_db()
    assert plan.needs_worker == ""


def test_what_is_compared_with_a_bound_run_is_measured_on_the_same_worker(plan: Run) -> None:
    register("big", 8)
    workers.bind(plan, "big")
    assert lifecycle.repeat_run(plan).needs_worker == "big"
    assert lifecycle.branch_run(plan, title="another").needs_worker == "big"


def test_a_plan_names_its_worker_and_an_unknown_one_is_refused(
    investigation: Investigation,
) -> None:
    register("big", 8)
    given = {"investigation": investigation, "title": "t", "server_args": ["--model-path", "m"]}
    run = lifecycle.add_run(**given, worker="big")
    assert run.needs_worker == "big"
    assert lifecycle.branch_run(run, title="anywhere", worker="").needs_worker == ""
    with pytest.raises(Refused, match="there is no worker 'moon'; known are: big"):
        lifecycle.add_run(**given, worker="moon")
    assert investigation.runs.count() == 2


def test_the_form_offers_the_workers_and_keeps_the_choice(
    investigation: Investigation, client: Client
) -> None:
    register("big", 8)
    client.force_login(User.objects.create_user("ann"))
    address = reverse("run-new", args=[investigation.slug])
    assert '<option value="big">big</option>' in client.get(address).content.decode()
    fields = {"title": "here", "engine": "reference", "server_args": "--model-path m"}
    load = {"prompts_per_repeat": 2, "max_new_tokens": 8, "concurrency": 1, "repeats": 1}
    client.post(address, {**fields, **load, "worker": "big", "then": "draft"})
    run = investigation.runs.get()
    assert run.needs_worker == "big"
    branch = client.get(reverse("run-branch", args=[investigation.slug, run.number]))
    assert '<option value="big" selected>big</option>' in branch.content.decode()
    wrong = client.post(address, {**fields, **load, "worker": "moon", "then": "draft"})
    assert "moon is not one of the available choices" in wrong.content.decode()
