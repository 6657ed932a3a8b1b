"""One's tokens for the API: made, shown once, revoked."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from experiments.lifecycle import access
from experiments.models import ApiToken
from experiments.refusal import Refused

DAYS = (7, 30, 90, 366)
SHOWN = 200


@never_cache
@sensitive_variables("made")
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """The list; POST makes one and shows its text in the answer, which no cache keeps."""
    user = request.user
    assert isinstance(user, User)  # noqa: S101 (login is required)
    made, problem = "", ""
    if request.method == "POST":
        try:
            days = request.POST.get("days", "")
            _, made = access.make_token(
                user=user,
                name=request.POST.get("name", ""),
                scope=request.POST.get("scope", ""),
                days=int(days) if days.isascii() and days.isdigit() and len(days) < 5 else 0,
            )
        except Refused as no:
            problem = str(no)
    now = timezone.now()
    rows = list(ApiToken.objects.filter(user=user)[:SHOWN])
    viewer = not access.may(user, "write")
    context = {
        "live": [row for row in rows if row.revoked_at is None and row.expires_at > now],
        "over": [row for row in rows if row.revoked_at is not None or row.expires_at <= now],
        "made": made,
        "problem": problem,
        "name": request.POST.get("name", "") if problem else "",
        "scopes": [s for s in ApiToken.Scope.choices if not viewer or s[0] == ApiToken.Scope.READ],
        "days": DAYS,
        "address": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "tokens.html", context, status=400 if problem else 200)


@require_POST
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """End one of one's own tokens now; a second time changes nothing."""
    row = ApiToken.objects.filter(pk=pk, user=request.user.pk).first()
    if row is None:
        raise Http404("You have no such token.")
    access.revoke_token(row)
    messages.success(request, f"{row.name} is revoked; whatever still uses it is refused.")
    return redirect("tokens")
