"""The house worker's round of webhooks: sends what is due; what and how is in the record's room."""

from __future__ import annotations

from celery import shared_task

from experiments import webhooks


@shared_task(name="workers.deliveries.deliver")
def deliver() -> None:
    """Send the deliveries that are due; safe to run twice, each try is taken by one sender."""
    webhooks.deliver_due()
