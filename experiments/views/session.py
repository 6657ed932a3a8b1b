"""Coming in and going out: password, one-time link, logout, and the address that says "alive"."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import login, views
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_safe

from experiments import lifecycle
from specdebug import __version__


@method_decorator(login_not_required, name="dispatch")
class Login(views.LoginView):
    """Django's login with our template; a polling piece of page is told to go there whole."""

    template_name = "login.html"
    redirect_authenticated_user = True

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.headers.get("HX-Request"):
            return HttpResponse(status=204, headers={"HX-Refresh": "true"})
        return super().get(request, *args, **kwargs)


@login_not_required
@never_cache
@sensitive_variables("token")
@require_http_methods(["GET", "HEAD", "POST"])
def login_link(request: HttpRequest, token: str) -> HttpResponse:
    """GET only shows a button, so that a link preview does not spend the token; POST spends it."""
    if request.method != "POST":
        return render(request, "login_link.html", {"spent": False})
    user = lifecycle.spend_login_link(token=token)
    if user is None:
        return render(request, "login_link.html", {"spent": True}, status=403)
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[-1])
    return redirect(settings.LOGIN_REDIRECT_URL)


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while the database answers, 503 when it does not; no login, nothing secret."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"status": "no database", "version": __version__}, status=503)
    return JsonResponse({"status": "ok", "version": __version__})
