"""What people put in by hand: events anywhere and back, recorded runs, notes, people."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.lifecycle import access
from experiments.models import ConfigEntry, Event, LoginLink, Role, Run
from tests.pages.conftest import Story


def _slug(story: Story) -> str:
    return f"/i/{story.investigation.slug}"


def test_an_event_goes_between_two_others(story: Story, browser: Client) -> None:
    page = browser.get(story.investigation.get_absolute_url()).content.decode()
    place = repr(story.baseline.position)
    assert f"event/?after={place}" in page
    form = browser.get(f"{_slug(story)}/event/?after={place}").content.decode()
    assert f'<option value="{place}" selected>' in form
    browser.post(f"{_slug(story)}/event/", {"kind": "note", "title": "between", "after": place})
    event = Event.objects.get(title="between")
    assert story.baseline.position < event.position < story.hypothesis.position


def test_an_event_is_changed_taken_away_and_brought_back(story: Story, browser: Client) -> None:
    event = story.investigation.events.get()
    at = event.position
    browser.post(
        f"{_slug(story)}/event/{event.pk}/", {"kind": "fix", "title": "changed", "text": "*so*"}
    )
    event.refresh_from_db()
    assert (event.kind, event.title, event.position) == ("fix", "changed", at)
    answer = browser.post(f"{_slug(story)}/event/{event.pk}/remove/", follow=True)
    assert not Event.objects.exists()
    assert "Undo" in answer.content.decode()
    browser.post(f"{_slug(story)}/event/restore/")
    back = Event.objects.get()
    assert (back.kind, back.title, back.text) == ("fix", "changed", "*so*")
    assert back.position > story.slow.position
    # Twice restores nothing twice, and removing what is gone is no fault.
    browser.post(f"{_slug(story)}/event/restore/")
    assert Event.objects.count() == 1
    assert browser.post(f"{_slug(story)}/event/{event.pk}/remove/").status_code == 302


def test_setting_a_finding_aside_offers_the_way_back(story: Story, browser: Client) -> None:
    address = f"{_slug(story)}/f/{story.finding.pk}/"
    page = browser.post(f"{address}aside/", {"reason": "known"}, follow=True).content.decode()
    assert f'action="{address}reopen/"' in page
    browser.post(f"{address}reopen/")
    story.finding.refresh_from_db()
    assert story.finding.state == "open"


def test_a_run_measured_elsewhere_is_recorded_with_its_repeats(
    story: Story, browser: Client
) -> None:
    given = {
        "title": "by hand",
        "tok_s": "56.8 57.1; 56.2",
        "accept_len": "1.6",
        "server_args": "--speculative-algorithm EAGLE3 --speculative-num-steps 1 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 16",
        "engine_release": "0.5.9",
        "concurrency": "2",
        "baseline": str(story.baseline.pk),
        "note": "from *notes*",
    }
    browser.post(f"{_slug(story)}/record/", given)
    run = Run.objects.get(title="by hand")
    assert run.recorded
    assert [r.tok_s for r in run.repeats.all()] == [56.8, 57.1, 56.2]
    assert run.repeats.first().step_ms == pytest.approx(1000 * 1.6 * 2 / 56.8)  # type: ignore[union-attr]
    entry = ConfigEntry.objects.get(run=run, key="speculative_num_draft_tokens")
    assert (entry.requested, entry.effective, entry.predicted) == (16, 2, True)
    assert run.checked_at is not None


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("tok_s", "fast", "is no number"),
        ("tok_s", "", "This field is required"),
        ("tok_s", "-3", "not above zero"),
        ("accept_len", "1.6 1.7", "2 figures for 3 repeats"),
        ("server_args", "--x 'open", "Not a command line"),
    ],
)
def test_what_is_no_run_is_refused_beside_its_field(
    story: Story, browser: Client, field: str, value: str, says: str
) -> None:
    count = Run.objects.count()
    given = {"title": "x", "tok_s": "1 2 3", "accept_len": ""} | {field: value}
    page = browser.post(f"{_slug(story)}/record/", given).content.decode()
    assert says in page
    assert Run.objects.count() == count


def test_a_run_s_title_and_note_can_be_changed(story: Story, browser: Client) -> None:
    browser.post(f"{_slug(story)}/r/1/note/", {"title": "new", "note": "**bold**"})
    page = browser.get(story.slow.get_absolute_url()).content.decode()
    assert "R1 · new" in page
    assert "<strong>bold</strong>" in page


def test_the_plan_says_what_the_release_will_make_of_it(story: Story, browser: Client) -> None:
    asked = {
        "engine": "reference",
        "server_args": "--model-path m --speculative-algorithm EAGLE3 "
        "--speculative-draft-model-path d --speculative-num-steps 1 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 16",
    }
    piece = browser.post(f"{_slug(story)}/run/foresee/", asked).content.decode()
    assert "will not run as asked" in piece
    assert "draft-tokens-overridden" in piece
    fair = {"engine": "reference", "server_args": asked["server_args"].replace("16", "2")}
    assert "nothing speaks against it" in (
        browser.post(f"{_slug(story)}/run/foresee/", fair).content.decode()
    )
    tree = {
        "engine": "reference",
        "server_args": f"{fair['server_args']} --speculative-eagle-topk 4",
    }
    refused = browser.post(f"{_slug(story)}/run/foresee/", tree).content.decode()
    assert "will not start" in refused
    assert "the reference engine drafts chains only" in refused
    assert "would stop with" not in refused
    open_quote = {"engine": "reference", "server_args": "--a 'b"}
    assert b"Not a command line yet" in (
        browser.post(f"{_slug(story)}/run/foresee/", open_quote).content
    )
    count = Run.objects.count()
    looked = browser.post(f"{_slug(story)}/run/", asked | {"then": "look", "title": "t"})
    assert "will not run as asked" in looked.content.decode()
    assert Run.objects.count() == count


def test_a_run_becomes_the_baseline_at_one_click(story: Story, browser: Client) -> None:
    address = f"{_slug(story)}/baseline/"
    assert browser.post(address, {"run": "1", "back": "run"})["Location"].endswith("/r/1/")
    story.investigation.refresh_from_db()
    assert story.investigation.baseline == story.slow
    browser.post(address, {"run": "99"})
    browser.post(address, {"run": "x"})
    story.investigation.refresh_from_db()
    assert story.investigation.baseline == story.slow


@pytest.fixture
def admin(browser: Client, user: User) -> Client:
    Role.objects.create(user=user, name=Role.Name.ADMIN)
    return browser


def test_an_admin_adds_somebody_who_comes_in_by_a_link(admin: Client) -> None:
    page = admin.post("/people/new/", {"name": "grace", "role": "viewer"}).content.decode()
    grace = User.objects.get(username="grace")
    assert access.role_of(grace) == "viewer"
    assert not grace.has_usable_password()
    assert "/login/link/" in page
    assert LoginLink.objects.get().user == grace
    assert "/login/link/" not in admin.get("/people/").content.decode()


@pytest.mark.parametrize("name", ["", "a b", "<script>", "ada", "ADA"])
def test_a_name_that_is_none_or_taken_is_refused(admin: Client, name: str) -> None:
    count = User.objects.count()
    admin.post("/people/new/", {"name": name, "role": "member"})
    assert User.objects.count() == count


def test_roles_and_accounts_are_an_admin_s_to_change(admin: Client, user: User) -> None:
    bob = User.objects.create_user("bob", password=None)
    admin.post(f"/people/{bob.pk}/role/", {"role": "viewer"})
    assert access.role_of(User.objects.get(pk=bob.pk)) == "viewer"
    admin.post(f"/people/{bob.pk}/active/", {"active": "no"})
    assert not User.objects.get(pk=bob.pk).is_active
    admin.post(f"/people/{user.pk}/active/", {"active": "no"})
    assert User.objects.get(pk=user.pk).is_active  # not one's own


@pytest.mark.parametrize("address", ["new/", "{}/role/", "{}/link/", "{}/active/"])
def test_a_member_changes_nothing_about_people(browser: Client, user: User, address: str) -> None:
    answer = browser.post(f"/people/{address.format(user.pk)}", {"name": "x", "role": "admin"})
    assert answer.status_code == 403
    assert b"Only an admin decides" in answer.content
    assert access.role_of(user) == "member"
    assert browser.get("/people/").status_code == 200


def test_somebody_without_a_password_sets_one(browser: Client, user: User) -> None:
    new = {"new_password1": "tok-per-step-77", "new_password2": "tok-per-step-77"}
    assert b"old_password" not in browser.get("/settings/password/").content
    assert browser.post("/settings/password/", new).status_code == 302
    user.refresh_from_db()
    assert user.check_password("tok-per-step-77")
    assert b"old_password" in browser.get("/settings/password/").content
