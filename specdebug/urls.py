"""Every address of the site; the pages' own lists live beside their views."""

from django.urls import include, path

urlpatterns = [path("", include("experiments.views.urls"))]
