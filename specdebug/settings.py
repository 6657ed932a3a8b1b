"""All settings, from the environment alone; every variable is described in docs/operations.md."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from specdebug.paths import broker_socket, data_dir

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = data_dir()


def _flag(name: str, default: bool = False) -> bool:
    value = os.environ.get(name, "")
    if value.lower() in {"", "0", "no", "false", "off"}:
        return default if value == "" else False
    if value.lower() in {"1", "yes", "true", "on"}:
        return True
    raise ImproperlyConfigured(f"{name}={value!r}: expected 1 or 0")


def _number(name: str, default: int) -> int:
    value = os.environ.get(name, "")
    if not value:
        return default
    if value.isascii() and value.isdigit() and int(value) > 0:
        return int(value)
    raise ImproperlyConfigured(f"{name}={value!r}: expected a whole number above zero")


def _secret_key() -> str:
    """The key of $SPECDEBUG_SECRET_KEY, or one made once and kept in the data folder."""
    given = os.environ.get("SPECDEBUG_SECRET_KEY")
    if given:
        return given
    path = DATA_DIR / "secret_key"
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        DATA_DIR.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Two processes may start at once: the first to create the file wins, both read the same key.
    fresh = path.with_name(f"secret_key.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_text(secrets.token_urlsafe(50))
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return path.read_text().strip()


DEBUG = _flag("SPECDEBUG_DEBUG")
SECRET_KEY = _secret_key()
ALLOWED_HOSTS = [
    host
    for host in os.environ.get("SPECDEBUG_HOSTS", "localhost,127.0.0.1,[::1]").split(",")
    if host
]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "axes",
    "csp",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "experiments",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
    "experiments.views.roles.ViewersOnlyRead",
]

ROOT_URLCONF = "specdebug.urls"
WSGI_APPLICATION = "specdebug.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]


def _database() -> dict[str, Any]:
    """SQLite in the data folder, or whatever $DATABASE_URL names."""
    url = os.environ.get("DATABASE_URL") or f"sqlite:///{DATA_DIR / 'specdebug.sqlite3'}"
    found: dict[str, Any] = dict(dj_database_url.parse(url, conn_max_age=60))
    if found["ENGINE"] == "django.db.backends.sqlite3":
        # IMMEDIATE takes the write lock at BEGIN, where waiting is allowed; a lock taken half-way
        # through a transaction fails at once however long the timeout is.
        found["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        }
    return found


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_VERBOSE = False
AXES_LOCKOUT_TEMPLATE = "locked_out.html"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"

HTTPS = _flag("SPECDEBUG_HTTPS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_NAME = "specdebug_session"
CSRF_COOKIE_NAME = "specdebug_csrf"
CSRF_TRUSTED_ORIGINS = [o for o in os.environ.get("SPECDEBUG_ORIGINS", "").split(",") if o]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Served straight from the source folders, so that there is no second copy to keep in step.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_MAX_AGE = 0 if DEBUG else 60

BLOB_DIR = DATA_DIR / "blobs"
RUN_DIR = DATA_DIR / "runs"
# Folders whose prompt files a plan may name.
PROMPT_DIRS = [p for p in os.environ.get("SPECDEBUG_PROMPTS", "").split(os.pathsep) if p]
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024
# The check page reads what is sent and keeps nothing; open to readers without an account if asked.
PUBLIC_CHECK = _flag("SPECDEBUG_PUBLIC_CHECK")
FILE_UPLOAD_TEMP_DIR = None

# A run counts as lost when its worker has not been heard of for this long.
RUN_HEARTBEAT_SECONDS = 2
RUN_LOST_AFTER_SECONDS = 20

# The API; docs/api.md.
API_REQUESTS_PER_MINUTE = _number("SPECDEBUG_API_RATE", 6000)
WEBHOOK_HOSTS = [h for h in os.environ.get("SPECDEBUG_WEBHOOK_HOSTS", "").split(",") if h]
REST_FRAMEWORK = {
    "EXCEPTION_HANDLER": "experiments.api.problems.handled",
    "DEFAULT_SCHEMA_CLASS": "experiments.api.schema.EndpointSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "experiments.api.auth.TokenAuthentication",
        "experiments.api.auth.BrowserSession",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "specdebug",
    "DESCRIPTION": "The record of specdebug for programs; docs/api.md tells how it is meant.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "RunStateEnum": "experiments.models.Run.State",
        "InvestigationStateEnum": "experiments.models.Investigation.State",
        "FindingStateEnum": "experiments.models.Finding.State",
        "GoalKindEnum": "experiments.models.Investigation.Goal",
        "EventKindEnum": "experiments.models.Event.Kind",
        "TurnKindEnum": "experiments.models.FindingEvent.Kind",
        "LinkKindEnum": "experiments.models.HypothesisLink.Kind",
        "CheckKindEnum": "experiments.models.AppliedCheck.Kind",
        "ChangeKindEnum": "experiments.models.ConfigChange.Kind",
        "MetricEnum": "experiments.lifecycle.hypotheses.METRICS",
    },
}

# A private server for the programs of one folder (specdebug.up.local) has no worker beside it.
WORKERLESS = os.environ.get("SPECDEBUG_WORKERLESS") == "1"
CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL") or (
    f"redis+socket://{broker_socket(DATA_DIR)}"
)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("SPECDEBUG_LOG_LEVEL", "INFO")},
    "loggers": {"axes": {"level": "WARNING"}, "httpx": {"level": "WARNING"}},
}
