"""A one-time login link: only its hash is kept, and using it spends it."""

from django.conf import settings
from django.db import models


class LoginLink(models.Model):
    token_sha256 = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"login link for {self.user}"
