"""A view that a person keeps: the address of a search, a comparison or a filtered list."""

from django.conf import settings
from django.db import models
from django.urls import reverse


class SavedView(models.Model):
    """`page` is the name of an address without parts of its own; `query` what follows its "?"."""

    class Page(models.TextChoices):
        SEARCH = "search", "search"
        FINDINGS = "findings", "findings"
        COMPARE = "compare", "comparison"
        HOME = "home", "investigations"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views"
    )
    page = models.CharField(max_length=20, choices=Page)
    name = models.CharField(max_length=80)
    query = models.CharField(max_length=3000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="saved_view_once")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"{reverse(self.page)}?{self.query}" if self.query else reverse(self.page)
