"""What differs between engines: command, environment, interpreter, version probe; it starts no
server."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from specdebug import __version__
from workers.plan import RunEnded

ROOT = Path(__file__).resolve().parents[1]
PROBE_SECONDS = 60.0  # importlib.metadata over a cold network disk


@dataclass(frozen=True)
class Engine:
    """One way to get a server. `interpreter` names the variable that holds the interpreter's path,
    "" for our own; `module` is what it runs, "" for a server that somebody else started."""

    name: str
    module: str = ""
    interpreter: str = ""
    env: Mapping[str, str] = field(default_factory=dict)  # this engine's own needs
    packages: tuple[str, ...] = ()  # whose releases are recorded
    gpus: bool = False  # whether it takes GPUs, which are leased for it

    @property
    def launches(self) -> bool:
        return bool(self.module)

    def python(self, own: Mapping[str, str] | None = None) -> str:
        """The interpreter's path. Raises RunEnded where it is not configured or not there."""
        if not self.interpreter:
            return sys.executable
        given = (os.environ if own is None else own).get(self.interpreter, "")
        if not given:
            raise RunEnded(
                "failed",
                f"The engine {self.name} has no interpreter: set {self.interpreter} to the python "
                "of the environment that has SGLang, and start the worker again.",
            )
        if not os.access(given, os.X_OK) or not Path(given).is_file():
            raise RunEnded(
                "failed", f"{self.interpreter}={given}: there is no program there that can be run."
            )
        return given

    def command(self, server_args: Sequence[str], *, host: str, port: int) -> tuple[str, ...]:
        """The whole command line; `--host` and `--port` are added where the plan has none.

        Raises RunEnded where the interpreter is missing.
        """
        own = []
        if flag(server_args, "--host") is None:
            own += ["--host", host]
        if flag(server_args, "--port") is None:
            own += ["--port", str(port)]
        return (self.python(), "-m", self.module, *server_args, *own)


_SGLANG_PACKAGES = (
    *("sglang", "torch", "transformers", "triton", "flashinfer-python"),
    *("sgl-kernel", "sglang-kernel"),
)
_CPU_SHIM = Path(__file__).resolve().parent / "sglang_cpu"

ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine(
            "reference",
            module="specdebug.reference.serve",
            # The worker runs from a checkout or an installed package; either way this finds it.
            env={"PYTHONPATH": str(ROOT)},
            packages=("torch", "safetensors", "tokenizers", "numpy"),
        ),
        Engine(
            "sglang",
            module="sglang.launch_server",
            interpreter="SPECDEBUG_SGLANG_PYTHON",
            packages=_SGLANG_PACKAGES,
            gpus=True,
        ),
        Engine(
            "sglang-cpu",
            module="sglang.launch_server",
            interpreter="SPECDEBUG_SGLANG_CPU_PYTHON",
            env={
                "PYTHONPATH": str(_CPU_SHIM),
                "SGLANG_USE_CPU_ENGINE": "1",
                "OMP_NUM_THREADS": "1",
                "TORCHDYNAMO_DISABLE": "1",
                "HF_HUB_OFFLINE": "1",
                "TRITON_INTERPRET": "1",
            },
            packages=_SGLANG_PACKAGES,
        ),
        Engine("attached"),
    )
}


def engine(name: str) -> Engine:
    """The engine of that name. Raises RunEnded for a name that is none."""
    found = ENGINES.get(name)
    if found is None:
        known = ", ".join(sorted(ENGINES))
        raise RunEnded("failed", f"There is no engine {name!r}; there are {known}.")
    return found


def flag(arguments: Sequence[str], *names: str) -> str | None:
    """The last value of a flag, written `--flag value` or `--flag=value`; None when absent."""
    found = None
    for index, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in names:
            following = arguments[index + 1] if index + 1 < len(arguments) else ""
            found = value if equals else following
    return found


def attached_url(server_args: Sequence[str]) -> str:
    """The base URL of a server that already runs: `--url http://host:port`, or the URL alone.

    Raises RunEnded for anything else.
    """
    given = flag(server_args, "--url")
    if given is None and len(server_args) == 1:
        given = server_args[0]
    try:
        parts = urlsplit(given or "")
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not given or not usable:
        raise RunEnded(
            "failed",
            f"The engine attached needs the server's address as --url http://HOST:PORT, not "
            f"{' '.join(argv_without_secrets(server_args))!r}.",
        )
    if parts.username or parts.password:
        raise RunEnded("failed", "The server's address must not carry a name and password.")
    return given.rstrip("/")


# ---- environment ---------------------------------------------------------------------------------

# What an engine may see of the worker's own environment. Everything else stays out, above all the
# database's address, the secret key and whatever tokens the machine has.
_HANDED_DOWN = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|LD_LIBRARY_PATH|SSL_CERT_\w+"
    r"|XDG_CACHE_HOME|HF_HOME|HF_HUB_CACHE|HF_HUB_OFFLINE|TRANSFORMERS_OFFLINE|TORCH_HOME"
    r"|TRITON_CACHE_DIR|CUDA_\w+|NVIDIA_\w+|NCCL_\w+|OMP_\w+|MKL_\w+|KMP_\w+"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# These decide which code runs before the engine's own; a plan has no business with them.
_NOT_BY_PLAN = re.compile(
    r"PATH|HOME|IFS|ENV|BASH_ENV|LD_(?!LIBRARY_PATH$)\w+|DYLD_\w+"
    r"|PYTHON(?!PATH$|UNBUFFERED$|FAULTHANDLER$)\w+"
    r"|SPECDEBUG_\w+|DJANGO_\w+|DATABASE_URL|CELERY_\w+|LEASH_MARK"
)
_SECRET = re.compile(
    r"SECRET|TOKEN(?!IZER|S\b)|PASSW|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE|AUTH(?!OR)",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(\w+://)[^/\s@]+@")
REMOVED = "[removed]"
SECRET_FLAGS = ("--api-key", "--admin-api-key", "--ssl-keyfile-password", "--hf-token")
# scheme://NAME:PASSWORD@host, and ?token=VALUE as signed addresses have it.
_URL_PASSWORD = re.compile(r"(\w+://[^/\s@:]*:)([^/\s@]+)@")
_URL_TOKEN = re.compile(
    r"([?&](?:\w*token|api_?key|key|sig|signature|secret|password|x-amz-\w+)=)([^&#\s]+)",
    re.IGNORECASE,
)


def environment(
    chosen: Engine, asked: Mapping[str, str], own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The child's whole environment: a few names of the worker's, the engine's needs, the plan's.

    Raises RunEnded for a name in the plan that is none or that is not the plan's to set.
    """
    worker = os.environ if own is None else own
    child = {
        name: value
        for name, value in worker.items()
        if _HANDED_DOWN.fullmatch(name) and not _SECRET.search(name)
    }
    child.update(chosen.env)
    child["PYTHONUNBUFFERED"] = "1"  # a killed engine's last words are in the log
    for name, value in asked.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise RunEnded("failed", f"The plan's environment: {name!r} is no variable's name.")
        if _NOT_BY_PLAN.fullmatch(name):
            raise RunEnded(
                "failed", f"The plan's environment: {name} is the worker's to set, not the plan's."
            )
        if name == "PYTHONPATH" and child.get("PYTHONPATH"):
            value = f"{value}{os.pathsep}{child['PYTHONPATH']}"
        child[name] = value
    return child


def without_secrets(env: Mapping[str, str]) -> dict[str, str]:
    """What may be recorded of an environment."""
    return {
        name: REMOVED if _SECRET.search(name) and value else _USERINFO.sub(r"\1", value)
        for name, value in sorted(env.items())
    }


def argv_without_secrets(argv: Sequence[str]) -> tuple[str, ...]:
    """The command line with the values of the engine's key flags and secrets in URLs taken out."""
    args, _ = replace_secrets(argv, {}, lambda _: REMOVED)
    return tuple(_USERINFO.sub(rf"\1{REMOVED}@", argument) for argument in args)


def replace_secrets(
    argv: Sequence[str], env: Mapping[str, str], put: Callable[[str], str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Arguments and variables with each secret value replaced by what `put` makes of it: values of
    the key flags, variables that are named like secrets, and secrets within URLs."""
    kept: list[str] = []
    after_key = False
    for argument in argv:
        name, equals, value = argument.partition("=")
        if after_key:
            argument = put(argument)
        elif name in SECRET_FLAGS and equals:
            argument = f"{name}={put(value)}"
        else:
            argument = _in_urls(argument, put)
        after_key = name in SECRET_FLAGS and not equals
        kept.append(argument)
    variables = {
        name: put(value) if _SECRET.search(name) else _in_urls(value, put)
        for name, value in env.items()
    }
    return tuple(kept), variables


def _in_urls(text: str, put: Callable[[str], str]) -> str:
    text = _URL_PASSWORD.sub(lambda m: m[1] + put(m[2]) + "@", text)
    return _URL_TOKEN.sub(lambda m: m[1] + put(m[2]), text)


def secret_values(server_args: Sequence[str], env: Mapping[str, str]) -> set[str]:
    """The secrets an engine was given, to be taken out of what it prints."""
    given: set[str] = set()

    def note(value: str) -> str:
        given.add(value)
        return value

    replace_secrets(server_args, env, note)
    # A short value stands in half the words of a log.
    return {value for value in given if value and len(value) >= 6}


# ---- versions ------------------------------------------------------------------------------------

_PROBE = """
import importlib.metadata as m, json, platform, sys
found = {"python": platform.python_version()}
for name in sys.argv[1:]:
    try:
        found[name] = m.version(name)
    except m.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def versions(chosen: Engine, env: Mapping[str, str]) -> dict[str, str]:
    """Releases behind a run: specdebug, platform, CPU, the engine's interpreter and packages.

    What cannot be found out is left out, with the reason under "probe".
    """
    found = {"specdebug": __version__, "platform": platform.platform(), "cpu": cpu_model()}
    if not chosen.launches:
        return found
    try:
        asked = subprocess.run(
            [chosen.python(), "-c", _PROBE, *chosen.packages],
            env=dict(env),
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        found.update(json.loads(asked.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as problem:
        found["probe"] = f"versions not known: {problem}"[:300]
    if "sglang" in found:
        found["engine"] = found["sglang"]
    return found


def cpu_model() -> str:
    """The processor's name as the system gives it, with the number of cores we may use."""
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{name}, {cores} cores"
