"""Every address of the site; the pages' own list lives beside their views."""

from django.urls import include, path

urlpatterns = [
    path("", include("experiments.api.urls")),
    path("", include("experiments.views.urls")),
]

handler400 = "experiments.views.errors.bad_request"
handler403 = "experiments.views.errors.forbidden"
handler404 = "experiments.views.errors.not_found"
