"""A program's key to the API: only its hash is kept, it has one scope and always an end."""

from django.conf import settings
from django.db import models


class ApiToken(models.Model):
    class Scope(models.TextChoices):
        READ = "read", "read"
        WRITE = "write", "read and write"
        # For a measuring host: it may send figures, logs and files of runs, nothing else.
        WORKER = "worker", "send measurements"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=100, help_text="what it is for")
    sha256 = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=12, help_text="its first characters, to tell it from others")
    scope = models.CharField(max_length=10, choices=Scope, default=Scope.READ)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Noted at most once a minute, so that reading does not become writing.
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"
