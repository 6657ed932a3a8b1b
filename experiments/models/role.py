"""What a person may do here: look, work, or decide about people and the installation."""

from django.conf import settings
from django.db import models


class Role(models.Model):
    """A person without a row is a member; a superuser is an admin whatever the row says."""

    class Name(models.TextChoices):
        VIEWER = "viewer", "viewer: reads"
        MEMBER = "member", "member: reads and writes"
        ADMIN = "admin", "admin: people, webhooks and all tokens too"

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="role"
    )
    name = models.CharField(max_length=10, choices=Name, default=Name.MEMBER)

    def __str__(self) -> str:
        return f"{self.user}: {self.name}"
