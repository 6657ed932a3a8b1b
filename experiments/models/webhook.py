"""Addresses that are told when something happens, and what they were told."""

from django.conf import settings
from django.db import models


class Webhook(models.Model):
    """`nonce` and the server's secret key make the signing key, which is stored nowhere."""

    url = models.CharField(max_length=500)
    events = models.JSONField(default=list, help_text="names of events; empty: all")
    nonce = models.CharField(max_length=64)
    active = models.BooleanField(default=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.url


class WebhookDelivery(models.Model):
    """One event for one address; written with the event, sent afterwards, tried again for a day."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=40)
    body = models.TextField(help_text="the JSON that is signed and sent, byte for byte")
    attempts = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True, blank=True, help_text="None: nothing left to do")
    delivered_at = models.DateTimeField(null=True, blank=True)
    status_code = models.PositiveSmallIntegerField(null=True, blank=True)
    problem = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "webhook deliveries"
        indexes = [models.Index(fields=["next_try_at"], name="webhook_due")]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook}"
