"""Answers to writes that a program may send again: the same key gets the same answer once more."""

from django.conf import settings
from django.db import models


class IdempotencyKey(models.Model):
    """Written in the transaction of the write itself: never one without the other."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of method, address and body")
    status = models.PositiveSmallIntegerField()
    body = models.TextField(help_text="the answer as JSON")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_once")]

    def __str__(self) -> str:
        return self.key
