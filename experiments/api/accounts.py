"""Who one is, one's tokens, and for admins the roles of people."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.response import Response

from experiments.api import find
from experiments.api.endpoint import Endpoint
from experiments.api.shapes import Shape, Text, Whole
from experiments.lifecycle import access
from experiments.models import ApiToken, Role

TAG = ["accounts"]


class MeShape(serializers.Serializer):
    """The caller. may: what is allowed by the role and by the token together."""

    user = serializers.CharField()
    role = serializers.ChoiceField(choices=Role.Name.choices)
    token = serializers.CharField(allow_null=True, help_text="first characters of the token used")
    scope = serializers.ChoiceField(choices=ApiToken.Scope.choices, allow_null=True)
    may = serializers.ListField(child=serializers.CharField())


class TokenShape(serializers.Serializer):
    """A token without its text, which is shown once, when it is made."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    hint = serializers.CharField(help_text="its first characters")
    scope = serializers.ChoiceField(choices=ApiToken.Scope.choices)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)


class FreshToken(serializers.Serializer):
    """A new token with its text; keep it now, it is not shown again."""

    token = serializers.CharField()
    about = TokenShape()


class NewToken(Shape):
    name = Text(max_length=100)
    scope = serializers.ChoiceField(choices=ApiToken.Scope.choices, required=False)
    days = Whole(required=False, min_value=1, max_value=access.LONGEST_DAYS)


class PersonShape(serializers.Serializer):
    user = serializers.CharField(source="username")
    role = serializers.SerializerMethodField()

    def get_role(self, user: User) -> str:
        return access.role_of(user)


class NewRole(Shape):
    role = serializers.ChoiceField(choices=Role.Name.choices)


class Tokens(serializers.Serializer):
    items = TokenShape(many=True)


class People(serializers.Serializer):
    items = PersonShape(many=True)


class Me(Endpoint):
    asks = {"GET": ""}

    @extend_schema(operation_id="readMe", responses=MeShape, tags=TAG)
    def get(self, request: Any) -> Response:
        """Who the caller is and what the caller may do."""
        token = self.token
        allowed = [
            what
            for what in ("read", "write", "worker", "admin")
            if access.may(request.user, what, token)
        ]
        return Response(
            {
                "user": self.by,
                "role": access.role_of(request.user),
                "token": token.hint if token else None,
                "scope": token.scope if token else None,
                "may": allowed,
            }
        )


class MyTokens(Endpoint):
    # The answer holds a secret, which must not be kept to be given again.
    repeatable = False
    asks = {"POST": "read"}

    @extend_schema(operation_id="listTokens", responses=Tokens, tags=TAG)
    def get(self, request: Any) -> Response:
        """The caller's tokens, the newest first."""
        rows = ApiToken.objects.filter(user=request.user)[:500]
        return Response({"items": TokenShape(rows, many=True).data})

    @extend_schema(
        operation_id="createToken", request=NewToken, responses={201: FreshToken}, tags=TAG
    )
    def post(self, request: Any) -> Response:
        """Make a token. A token makes none that may do more than itself, or lasts longer."""
        values = find.checked(NewToken, request.data)
        scope = values.get("scope", ApiToken.Scope.READ)
        mine = self.token
        if mine is not None and not access.SCOPES[scope] <= access.SCOPES[mine.scope]:
            raise exceptions.PermissionDenied(
                f"this token is for '{mine.scope}' and makes none for '{scope}'"
            )
        row, text = access.make_token(user=request.user, **values)
        return Response({"token": text, "about": TokenShape(row).data}, status=201)


class OneToken(Endpoint):
    asks = {"DELETE": "read"}

    @extend_schema(operation_id="revokeToken", responses={200: TokenShape}, tags=TAG)
    def delete(self, request: Any, pk: int) -> Response:
        """Revoke a token of one's own; an admin may revoke anybody's."""
        rows = ApiToken.objects.all()
        if not access.may(request.user, "admin", self.token):
            rows = rows.filter(user=request.user)
        return Response(TokenShape(access.revoke_token(rows.get(pk=pk))).data)


class AllPeople(Endpoint):
    asks = {"GET": "admin"}

    @extend_schema(operation_id="listPeople", responses=People, tags=TAG)
    def get(self, request: Any) -> Response:
        """Everybody with their role."""
        rows = User.objects.filter(is_active=True).select_related("role").order_by("username")
        return Response({"items": PersonShape(rows, many=True).data})


class OnePerson(Endpoint):
    asks = {"PATCH": "admin"}

    @extend_schema(operation_id="setRole", request=NewRole, responses=PersonShape, tags=TAG)
    def patch(self, request: Any, username: str) -> Response:
        """Give a person a role."""
        role = find.checked(NewRole, request.data)["role"]
        user = User.objects.get(username=username, is_active=True)
        self.unchanged(PersonShape(user).data)
        access.set_role(user=user, name=role, by=request.user)
        return self.tagged(PersonShape(User.objects.get(pk=user.pk)).data)
