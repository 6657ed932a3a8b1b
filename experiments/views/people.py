"""One's own settings, and the people of this installation with what each may do."""

from __future__ import annotations

from typing import Any

from django.conf import settings as site
from django.contrib import messages
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.views import PasswordChangeView
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from experiments.lifecycle import access, make_login_link
from experiments.lifecycle.people import add_person, set_active
from experiments.models import Role, SavedView
from experiments.refusal import Refused
from specdebug import __version__


def _me(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 (login is required)
    return request.user


def _admin(request: HttpRequest) -> User:
    if not access.may(_me(request), "admin"):
        raise PermissionDenied("Only an admin decides about people. Ask one to do it.")
    return _me(request)


@require_safe
def settings(request: HttpRequest) -> HttpResponse:
    """Who one is here, what one may do, and how this installation is set up."""
    me = _me(request)
    context = {
        "role": Role.Name(access.role_of(me)).label,
        "admin": access.may(me, "admin"),
        "views": SavedView.objects.filter(user=me),
        "has_password": me.has_usable_password(),
        "version": __version__,
        "facts": [
            ("database", connection.vendor),
            ("open check page", "yes" if site.PUBLIC_CHECK else "no"),
            ("behind TLS", "yes" if site.HTTPS else "no"),
            ("host names", ", ".join(site.ALLOWED_HOSTS)),
        ],
    }
    return render(request, "settings.html", context)


class Password(PasswordChangeView):
    """Django's change of password in our form."""

    template_name = "form.html"
    success_url = reverse_lazy("settings")

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        has = _me(self.request).has_usable_password()
        heading = "Change the password" if has else "Set a password"
        return super().get_context_data(heading=heading, **more)

    def get_form_class(self) -> Any:
        """Somebody who came in by a link has no old password to ask for."""
        return PasswordChangeForm if _me(self.request).has_usable_password() else SetPasswordForm

    def form_valid(self, form: object) -> HttpResponse:
        messages.success(self.request, "The password is changed; other sessions are logged out.")
        return super().form_valid(form)  # type: ignore[arg-type]


@require_safe
def people(request: HttpRequest) -> HttpResponse:
    """Everybody with an account; an admin may change what they may do."""
    return _shown(request)


@never_cache
def _shown(request: HttpRequest, made: tuple[str, str] | None = None) -> HttpResponse:
    """The list; `made`: a name and its login link, which is shown here once and kept nowhere."""
    rows = User.objects.select_related("role").order_by("-is_active", "username")
    context = {
        "people": [(row, _role(row)) for row in rows],
        "roles": Role.Name.choices,
        "admin": access.may(_me(request), "admin"),
        "made": made,
    }
    return render(request, "people.html", context)


def _role(row: User) -> str:
    """The role without a query for each row."""
    if row.is_superuser:
        return str(Role.Name.ADMIN)
    role = getattr(row, "role", None)
    return str(role.name if role is not None else Role.Name.MEMBER)


def _person(pk: int) -> User:
    person = User.objects.filter(pk=pk).first()
    if person is None:
        raise Http404("There is no such account.")
    return person


def _with_link(request: HttpRequest, person: User) -> HttpResponse:
    """Make a login link and show it to the admin who asked."""
    path = reverse("login-link", args=[make_login_link(user=person)])
    return _shown(request, (person.username, request.build_absolute_uri(path)))


@require_POST
def add(request: HttpRequest) -> HttpResponse:
    """Open an account and make its first login link."""
    by = _admin(request)
    try:
        person = add_person(
            name=request.POST.get("name", ""), role=request.POST.get("role", ""), by=by
        )
    except Refused as no:
        messages.error(request, str(no))
        return redirect("people")
    return _with_link(request, person)


@require_POST
def link(request: HttpRequest, pk: int) -> HttpResponse:
    """A fresh login link for a person."""
    _admin(request)
    return _with_link(request, _person(pk))


@require_POST
def role(request: HttpRequest, pk: int) -> HttpResponse:
    """Give a person a role."""
    by = _admin(request)
    try:
        access.set_role(user=_person(pk), name=request.POST.get("role", ""), by=by)
    except Refused as no:
        messages.error(request, str(no))
    return redirect("people")


@require_POST
def active(request: HttpRequest, pk: int) -> HttpResponse:
    """Close an account or open it again."""
    by, on = _admin(request), request.POST.get("active") == "yes"
    try:
        set_active(person=_person(pk), active=on, by=by)
    except Refused as no:
        messages.error(request, str(no))
    return redirect("people")
