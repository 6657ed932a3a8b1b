"""Views that a person keeps under a name, and lets go of."""

from __future__ import annotations

from django.contrib.auth.models import User

from experiments.lifecycle.text import needed
from experiments.models import SavedView
from experiments.refusal import Refused

LONGEST_QUERY = 3000
MOST_VIEWS = 200


def save_view(*, user: User, page: str, name: str, query: str) -> SavedView:
    """Keep an address under a name; the same name again takes the new address."""
    if page not in SavedView.Page.values:
        raise Refused(f"{page!r} is no page that can be kept")
    name = needed(name, "name of the view", 80)
    if len(query) > LONGEST_QUERY:
        raise Refused(f"the address is longer than {LONGEST_QUERY} characters; shorten the query")
    others = SavedView.objects.filter(user=user).exclude(name=name)
    if others.count() >= MOST_VIEWS:
        raise Refused(f"{MOST_VIEWS} views are kept already; remove one first")
    return SavedView.objects.update_or_create(
        user=user, name=name, defaults={"page": page, "query": query.lstrip("?")}
    )[0]


def remove_view(*, user: User, pk: int) -> str:
    """Let go of one of the user's own views; gives its page, "" where it is gone already."""
    view = SavedView.objects.filter(user=user, pk=pk).first()
    if view is None:
        return ""
    view.delete()
    return view.page
