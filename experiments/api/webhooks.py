"""Webhooks, for admins: addresses that are told when something happens."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from experiments import webhooks
from experiments.api import find
from experiments.api.endpoint import Endpoint
from experiments.api.investigations import Nothing
from experiments.api.shapes import Shape, Text
from experiments.models import Webhook, WebhookDelivery

TAG = ["webhooks"]


class WebhookShape(serializers.Serializer):
    id = serializers.IntegerField(source="pk")
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.CharField(), help_text="empty: all")
    active = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class FreshWebhook(serializers.Serializer):
    """A new webhook with its signing key, which is shown this once."""

    secret = serializers.CharField()
    about = WebhookShape()


class NewWebhook(Shape):
    url = Text(max_length=500)
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=[(e, e) for e in webhooks.EVENTS]), required=False
    )


class DeliveryShape(serializers.Serializer):
    """One try to tell; problem: why the last one failed."""

    id = serializers.IntegerField(source="pk")
    event = serializers.CharField()
    attempts = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    delivered_at = serializers.DateTimeField(allow_null=True)
    next_try_at = serializers.DateTimeField(allow_null=True)
    status_code = serializers.IntegerField(allow_null=True)
    problem = serializers.CharField(allow_blank=True)


class Hooks(serializers.Serializer):
    items = WebhookShape(many=True)


class Deliveries(serializers.Serializer):
    items = DeliveryShape(many=True)


class AllWebhooks(Endpoint):
    asks = {"GET": "admin", "POST": "admin"}
    # The answer holds a secret, which must not be kept to be given again.
    repeatable = False

    @extend_schema(operation_id="listWebhooks", responses=Hooks, tags=TAG)
    def get(self, request: Any) -> Response:
        """All webhooks."""
        return Response({"items": WebhookShape(Webhook.objects.all(), many=True).data})

    @extend_schema(
        operation_id="createWebhook", request=NewWebhook, responses={201: FreshWebhook}, tags=TAG
    )
    def post(self, request: Any) -> Response:
        """Add an address whose host the operator allows; the signing key is shown once."""
        values = find.checked(NewWebhook, request.data)
        hook = webhooks.add_webhook(
            url=values["url"], events=values.get("events", ()), by=request.user
        )
        about = WebhookShape(hook).data
        return Response({"secret": webhooks.secret_of(hook), "about": about}, status=201)


class OneWebhook(Endpoint):
    asks = {"DELETE": "admin"}

    @extend_schema(operation_id="deleteWebhook", responses={204: None}, tags=TAG)
    def delete(self, request: Any, pk: int) -> Response:
        """Remove an address with what it was told."""
        webhooks.remove_webhook(Webhook.objects.get(pk=pk))
        return Response(status=204)


class Ping(Endpoint):
    asks = {"POST": "admin"}
    repeatable = False

    @extend_schema(operation_id="pingWebhook", request=Nothing, responses={202: None}, tags=TAG)
    def post(self, request: Any, pk: int) -> Response:
        """Send a `ping`, to see whether it arrives; look at the deliveries afterwards."""
        find.checked(Nothing, request.data)
        webhooks.announce("ping", {"by": self.by}, only=Webhook.objects.get(pk=pk))
        return Response(status=202)


class DeliveriesOf(Endpoint):
    asks = {"GET": "admin"}

    @extend_schema(operation_id="listDeliveries", responses=Deliveries, tags=TAG)
    def get(self, request: Any, pk: int) -> Response:
        """What an address was told, the newest first, up to 100."""
        rows = WebhookDelivery.objects.filter(webhook=Webhook.objects.get(pk=pk))[:100]
        return Response({"items": DeliveryShape(rows, many=True).data})
