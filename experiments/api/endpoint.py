"""What every address of the API does before and after its own work: who asks and may they, how
often, was this write sent before, is it still the state that was read."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import IO, Any, ClassVar

from django.conf import settings
from django.db import IntegrityError, transaction
from django.http import HttpResponseBase, StreamingHttpResponse
from django.utils import timezone
from rest_framework import exceptions
from rest_framework.negotiation import BaseContentNegotiation, DefaultContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import APIView

from experiments.api import problems, rates
from experiments.api.auth import BrowserSession, TokenAuthentication
from experiments.lifecycle import access
from experiments.models import ApiToken, IdempotencyKey
from experiments.store import pieces

log = logging.getLogger(__name__)

KEEP_KEYS = timedelta(days=1)
LONGEST_KEY = 255
SAFE = ("GET", "HEAD", "OPTIONS")
_TAGS = re.compile(r'\*|(W/)?"[^"]*"(\s*,\s*(W/)?"[^"]*")*')


class AnyForm(BaseContentNegotiation):
    """Each address answers in one form, whatever is asked for; problems are JSON everywhere."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return DefaultContentNegotiation().select_parser(request, parsers)

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class Json(JSONParser):
    """JSON without NaN and Infinity, and not nested beyond reason."""

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise exceptions.ParseError("the JSON is nested too deep") from None


class Endpoint(APIView):
    """One address.

    asks: what the caller must be allowed to do, by method, "read or worker" for either, "" for
    what anybody known may; read for GET and write for the rest where nothing is said.
    repeatable: POST takes an Idempotency-Key.
    """

    asks: ClassVar[Mapping[str, str]] = {}
    repeatable: ClassVar[bool] = True
    authentication_classes = (TokenAuthentication, BrowserSession)
    permission_classes = ()
    parser_classes = (Json,)
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = AnyForm

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """The framework's own order of things, with our keys around the handler."""
        self.args, self.kwargs = args, kwargs
        request = self.initialize_request(request, *args, **kwargs)
        self.request = request
        self.headers = self.default_response_headers
        try:
            self.initial(request, *args, **kwargs)
            handler = getattr(self, request.method.lower(), None)
            if handler is None or request.method.lower() not in self.http_method_names:
                handler = self.http_method_not_allowed
            response = self._once(request, lambda: handler(request, *args, **kwargs))
        except Exception as error:
            response = self._said(error)
        self.response = self.finalize_response(request, response, *args, **kwargs)
        answer: HttpResponseBase = self.response
        return answer

    def _said(self, error: Exception) -> Response:
        """A problem for whatever went wrong; a fault of ours is logged and tells nothing of us."""
        try:
            found: Response = self.handle_exception(error)
        except Exception:
            log.exception("%s %s", self.request.method, self.request.path)
            detail = "something went wrong on our side; it is in the server's log"
            found = Response(
                problems.problem(500, detail), status=500, content_type=problems.MEDIA_TYPE
            )
        return found

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        """Who asks, may they, how often; raises the framework's exceptions."""
        if request.method == "OPTIONS":
            raise exceptions.MethodNotAllowed("OPTIONS")
        super().initial(request, *args, **kwargs)
        if not request.user.is_authenticated:
            raise exceptions.NotAuthenticated(
                "send a token as 'Authorization: Bearer sdb_...'; make one on the Tokens page"
            )
        self.headers = {**self.headers, **rates.use(request).headers}
        self._check_size(request)
        what = self.asks.get(request.method, "read" if request.method in SAFE else "write")
        if what and not any(access.may(request.user, w, self.token) for w in what.split(" or ")):
            raise exceptions.PermissionDenied(self._why_not(what))

    def _check_size(self, request: Any) -> None:
        """Parsers that read a whole body into memory take no more than the pages do."""
        length = request.META.get("CONTENT_LENGTH") or "0"
        most: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if Json in self.parser_classes and length.isdigit() and int(length) > most:
            raise problems.TooLarge()

    @property
    def token(self) -> ApiToken | None:
        found = self.request.auth
        return found if isinstance(found, ApiToken) else None

    @property
    def by(self) -> str:
        """The name of the person behind the request."""
        return str(self.request.user.get_username())

    def _why_not(self, what: str) -> str:
        if self.token is not None and access.may(self.request.user, what):
            return f"this token is for '{self.token.scope}' and may not {_DOING[what]}"
        role = access.role_of(self.request.user)
        return f"your role is {role}, which may not {_DOING[what]}"

    # ---- the same write again --------------------------------------------------------------------

    def _once(self, request: Any, work: Callable[[], Any]) -> Any:
        """Do `work`, or give the kept answer where this key came with this request before.

        Key and effect are saved in one transaction, so that a crash in between leaves neither; of
        two requests at once the second waits for the first.
        """
        key = request.META.get("HTTP_IDEMPOTENCY_KEY")
        if request.method != "POST" or not self.repeatable or key is None:
            return work()
        # An empty one is a script's variable that was never set, which must not go unnoticed.
        if not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
            raise exceptions.ValidationError(
                {"Idempotency-Key": [f"must be 1 to {LONGEST_KEY} printable characters"]}
            )
        print_ = hashlib.sha256(
            b"\n".join([request.method.encode(), request.get_full_path().encode(), request.body])
        ).hexdigest()
        if (kept := _kept(request.user, key, print_)) is not None:
            return kept
        try:
            with transaction.atomic():
                if (kept := _kept(request.user, key, print_)) is not None:
                    return kept
                answer = work()
                IdempotencyKey.objects.filter(created_at__lt=timezone.now() - KEEP_KEYS).delete()
                IdempotencyKey.objects.create(
                    user=request.user,
                    key=key,
                    fingerprint=print_,
                    status=answer.status_code,
                    body=JSONRenderer().render(answer.data).decode(),
                )
                return answer
        except IntegrityError:
            kept = _kept(request.user, key, print_)
            if kept is None:
                raise
            return kept

    # ---- the state that was read -----------------------------------------------------------------

    def tagged(self, data: Any, status: int = 200) -> Response:
        """An answer with its ETag; 304 where the caller has it already."""
        tag = etag(data)
        headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
        if status == 200 and _names(self.request.META.get("HTTP_IF_NONE_MATCH", ""), tag):
            return Response(status=304, headers=headers)
        return Response(data, status=status, headers=headers)

    def unchanged(self, data: Any) -> None:
        """Raises Changed where If-Match was sent and names another state than `data`."""
        wanted = self.request.META.get("HTTP_IF_MATCH")
        if wanted is None:
            return
        if not _TAGS.fullmatch(wanted.strip()):
            raise exceptions.ValidationError(
                {"If-Match": ["must be an ETag as an answer gave it, with its quotes"]}
            )
        if not _names(wanted, etag(data)):
            raise problems.Changed()

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        final = super().finalize_response(request, response, *args, **kwargs)
        if not final.has_header("Cache-Control"):
            final["Cache-Control"] = "private, no-store"
        return final


_DOING = {
    "read": "read",
    "write": "change anything",
    "worker": "send measurements",
    "read or worker": "read",
    "admin": "do what is for admins",
}


def _kept(user: Any, key: str, print_: str) -> Response | None:
    row = IdempotencyKey.objects.filter(user=user, key=key).first()
    if row is None or row.created_at < timezone.now() - KEEP_KEYS:
        return None
    if row.fingerprint != print_:
        raise problems.KeyReused()
    return Response(
        json.loads(row.body), status=row.status, headers={"Idempotent-Replayed": "true"}
    )


def etag(data: Any) -> str:
    """The tag of a state: a hash of what is answered."""
    text = json.dumps(data, sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'


def _names(header: str, tag: str) -> bool:
    """Whether a list of entity tags names this one; * names any."""
    tags = [part.strip().removeprefix("W/") for part in header.split(",")]
    return "*" in tags or tag in tags


class OpenFile:
    """An open file in pieces; closed with the answer, also where nobody reads it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.pieces, self.close = pieces(file), file.close

    def __iter__(self) -> Iterator[bytes]:
        return self.pieces


def file_answer(
    chunks: Any, *, name: str, media_type: str, status: int = 200, headers: Any = None
) -> StreamingHttpResponse:
    """A file that is never shown by a browser as a page of ours."""
    answer = StreamingHttpResponse(chunks, content_type=media_type, status=status)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["X-Content-Type-Options"] = "nosniff"
    for key, value in (headers or {}).items():
        answer[key] = value
    return answer
