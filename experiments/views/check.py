"""`specdebug check` as a page: files or pasted text in, findings out; nothing is kept.

Open to everybody where the operator says so (SPECDEBUG_PUBLIC_CHECK), with smaller bounds.
"""

from __future__ import annotations

import threading
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from experiments.views.checked import Checked, checked
from experiments.views.forms import Form

MIB = 1024 * 1024
MOST_BYTES = 256 * MIB
MOST_BYTES_PUBLIC = 16 * MIB
MOST_FILES = 20
# Reading a large log takes a second of a processor; more than these at once would stop the pages.
_ROOM = threading.BoundedSemaphore(2)
_PACKED = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", b"\x28\xb5\x2f\xfd")


class _Files(forms.ClearableFileInput):
    allow_multiple_selected = True


class _FilesField(forms.FileField):
    widget = _Files

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile[Any]]:
        several = data if isinstance(data, list | tuple) else [data] if data else []
        return [super(_FilesField, self).clean(one, initial) for one in several]


class CheckForm(Form):
    text = forms.CharField(
        required=False,
        strip=False,
        label="Paste anything",
        widget=forms.Textarea(attrs={"rows": 9, "class": "mono", "spellcheck": "false"}),
        help_text="A launch command, a log, a table of figures, a config.json, prose with flags in "
        "it: what it is, is told from its content.",
    )
    files = _FilesField(  # type: ignore[assignment]  # the name that people see
        required=False, label="Or drop files", help_text="Logs, configs, benchmark output."
    )
    engine_version = forms.CharField(
        required=False, max_length=40, label="Engine's release", help_text="As 0.5.9, if known."
    )
    baseline = forms.FloatField(
        required=False,
        min_value=1e-6,
        label="Throughput without speculation",
        help_text="Output tok/s of the plain run, if known.",
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if not self.errors and not values.get("files") and not values.get("text", "").strip():
            raise forms.ValidationError("Paste something or choose a file; a log tells most.")
        if len(values.get("files") or ()) > MOST_FILES:
            raise forms.ValidationError(f"At most {MOST_FILES} files are looked at together.")
        return values


@csrf_exempt
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def check(request: HttpRequest) -> HttpResponse:
    """The form, and under it what was found."""
    known = request.user.is_authenticated
    if not known and not settings.PUBLIC_CHECK:
        return redirect_to_login(request.get_full_path())
    most = MOST_BYTES if known else MOST_BYTES_PUBLIC
    # Looked at before anything reads the body, which looking for the form's token would do.
    length = str(request.META.get("CONTENT_LENGTH") or "0")
    if not length.isdigit() or int(length) > most:
        return _too_much(
            request,
            f"More than {most // MIB} MiB were sent; send less, or run "
            "`specdebug check` on the machine that has the files.",
        )
    try:
        return _answer(request)
    except RequestDataTooBig:
        pasted = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // MIB
        return _too_much(request, f"More than {pasted} MiB were pasted; send it as a file.")


def _too_much(request: HttpRequest, words: str) -> HttpResponse:
    # The form of this answer is fresh: what was sent has not been read.
    return render(request, "check.html", {"form": CheckForm(), "refused": words}, status=413)


@csrf_protect
def _answer(request: HttpRequest) -> HttpResponse:
    form = CheckForm(request.POST or None, request.FILES or None)
    context: dict[str, Any] = {"form": form}
    status = 200
    if request.method == "POST" and form.is_valid():
        if not request.user.is_authenticated and any(
            _packed(f) for f in form.cleaned_data["files"]
        ):
            form.add_error("files", "Send compressed files unpacked, or log in.")
        elif not _ROOM.acquire(blocking=False):
            context["refused"], status = "Two other checks are under way; try again at once.", 503
        else:
            try:
                context["checked"] = _check(form)
            finally:
                _ROOM.release()
    return render(request, "check.html", context, status=status)


def _check(form: CheckForm) -> Checked:
    values = form.cleaned_data
    return checked(
        values["files"],
        values["text"],
        engine_version=values["engine_version"].strip() or None,
        baseline=values["baseline"],
    )


def _packed(file: UploadedFile[Any]) -> bool:
    head = file.read(6)
    file.seek(0)
    return bytes(head).startswith(_PACKED)
