"""A run's arguments as rows: asked for, in force, by whose decision; and what changed between runs.

The rules of the engine come from `specdebug.sglang`; nothing is decided here about their worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.models import ConfigChange, ConfigEntry, Run
from specdebug.eagle.draft_config import TargetConfig
from specdebug.reference.server_args import refusal as server_args_refusal
from specdebug.sglang import flags, overrides
from specdebug.sglang.releases import Release

# Arguments that bear on speculation or on speed; the whole list stays in the run's server_info.
KEPT = frozenset(
    {
        "attention_backend",
        "chunked_prefill_size",
        "context_length",
        "cuda_graph_max_bs",
        "decode_log_interval",
        "device",
        "disable_cuda_graph",
        "disable_overlap_schedule",
        "disable_radix_cache",
        "dp_size",
        "dtype",
        "kv_cache_dtype",
        "max_running_requests",
        "mem_fraction_static",
        "model_path",
        "page_size",
        "quantization",
        "tp_size",
    }
)
# They differ between any two starts and change nothing that is measured.
NOISE = frozenset(
    {
        "host",
        "internal_states",
        "launch_command",
        "nccl_port",
        "port",
        "random_seed",
        "startup_time",
        "status",
        "uptime",
    }
)
# What nobody needs to read: kept in the plan, which starts the server, and nowhere else.
SECRETS = frozenset({"admin_api_key", "api_key", "hf_token", "ssl_keyfile_password"})
_MISSING = object()


def own_refusal(engine: str, server_args: Sequence[str]) -> str:
    """Why the engine itself, whatever release it follows, does not run these arguments; "" where it
    does or nothing is known of that."""
    return server_args_refusal(server_args) if engine == "reference" else ""


@dataclass(frozen=True)
class Effective:
    """Arguments in force and where they were read: "server_info" or a line of the log."""

    args: Mapping[str, Any]
    source: str
    line: int | None = None


def requested_of(server_args: Sequence[str]) -> dict[str, Any]:
    """The engine's own argument names with the values that were asked for."""
    command = flags.parse_argv(["python", "-m", "sglang.launch_server", *server_args])
    return {name: given.value for name, given in command.flags.items()}


def without_secrets(value: Any) -> Any:
    """A server's answer with the keys in SECRETS taken out, however deep they stand."""
    if isinstance(value, Mapping):
        return {k: without_secrets(v) for k, v in value.items() if k not in SECRETS}
    if isinstance(value, list | tuple):
        return [without_secrets(v) for v in value]
    return value


def release_of(text: str | None) -> Release | None:
    """The engine's release as far as `text` names one."""
    return Release.find(text) if text else None


def entries(
    run: Run,
    requested: Mapping[str, Any],
    effective: Effective | None,
    *,
    release: Release | None,
    target: TargetConfig | None = None,
    env: Mapping[str, str] | None = None,
) -> list[ConfigEntry]:
    """Unsaved rows, requested and effective side by side, each with who decided and why.

    Without `effective` the rules predict it and the rows say so.
    """
    predicted = overrides.predict(requested, target, release, env=env)
    seen: Mapping[str, Any] = effective.args if effective else {}
    speculative = requested.get("speculative_algorithm") or seen.get("speculative_algorithm")
    keys = set(requested) | {k for k in KEPT & seen.keys() if seen[k] is not None}
    if speculative:
        keys |= {k for k, v in seen.items() if k.startswith("speculative_") and v is not None}
        keys |= predicted.changed.keys()
    if "speculative_algorithm" in seen:
        keys.add("speculative_algorithm")
    return [
        _entry(run, key, requested, effective, predicted.effective.get(key))
        for key in sorted(keys - NOISE - SECRETS)
    ]


def _entry(
    run: Run,
    key: str,
    requested: Mapping[str, Any],
    effective: Effective | None,
    rule: overrides.EffectiveValue | None,
) -> ConfigEntry:
    asked = key in requested
    value: Any = requested.get(key)
    entry = ConfigEntry(run=run, key=key[:80], requested=value, was_requested=asked)
    if effective is not None and key in effective.args:
        entry.effective = effective.args[key]
        entry.effective_known = True
        entry.line = effective.line
        entry.origin, entry.why = _origin(asked, value, entry.effective, rule)
    elif rule is not None:
        entry.effective, entry.predicted = rule.value, True
        entry.origin, entry.why = ConfigEntry.Origin(rule.origin), rule.why
    return entry


def _origin(
    asked: bool, requested: Any, effective: Any, rule: overrides.EffectiveValue | None
) -> tuple[ConfigEntry.Origin, str]:
    explained = rule is not None and rule.value == effective
    why = rule.why if rule is not None and explained else ""
    if asked and requested == effective:
        return ConfigEntry.Origin.EXPLICIT, ""
    if asked:
        return ConfigEntry.Origin.OVERRIDE, why or "the engine changed it; no known rule says why"
    if rule is not None and explained:
        return ConfigEntry.Origin(rule.origin), why
    return ConfigEntry.Origin.DEFAULT, why


def difference(
    before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = ""
) -> Iterable[tuple[str, Any, Any]]:
    """(dotted key, before, after) where two nested mappings differ; None where a side lacks it."""
    for key in sorted(before.keys() | after.keys()):
        if key in NOISE or key in SECRETS:
            continue
        old, new = before.get(key, _MISSING), after.get(key, _MISSING)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from difference(old, new, f"{prefix}{key}.")
        elif (None if old is _MISSING else old) != (None if new is _MISSING else new):
            yield (
                f"{prefix}{key}",
                None if old is _MISSING else old,
                None if new is _MISSING else new,
            )


@dataclass(frozen=True)
class Setting:
    """What one run was set up with, as far as it is known: what changes are told from."""

    args: Mapping[str, Any]
    env: Mapping[str, Any]
    versions: Mapping[str, Any]
    draft_config: Mapping[str, Any] | None


def changes(run: Run, before: Setting, after: Setting) -> list[ConfigChange]:
    """Unsaved rows of what `run` changed against the run it follows."""
    found: list[ConfigChange] = []

    def add(kind: ConfigChange.Kind, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        found.extend(
            ConfigChange(run=run, kind=kind, key=key[:120], before=was, after=now)
            for key, was, now in difference(old, new)
        )

    add(ConfigChange.Kind.ARGUMENT, before.args, after.args)
    if before.draft_config is not None and after.draft_config is not None:
        add(ConfigChange.Kind.DRAFT_CONFIG, before.draft_config, after.draft_config)
    add(ConfigChange.Kind.ENVIRONMENT, before.env, after.env)
    add(ConfigChange.Kind.VERSION, before.versions, after.versions)
    return found
