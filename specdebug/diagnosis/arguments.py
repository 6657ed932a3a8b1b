"""What was asked of a server and what is in force, setup by setup; it compares nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from specdebug.diagnosis.facts import FRAGMENT, Boot, Case, Fact, Launch, ServerState
from specdebug.diagnosis.findings import Evidence
from specdebug.eagle.draft_config import DraftConfig, TargetConfig
from specdebug.sglang.overrides import Prediction, predict
from specdebug.sglang.patterns import regex
from specdebug.sglang.releases import KNOWN, Release

__all__ = [
    "ALGORITHM",
    "DRAFT_TOKENS",
    "NUM_STEPS",
    "TOPK",
    "ReleaseKnowledge",
    "Setup",
    "contradictions",
    "draft_config",
    "release_knowledge",
    "setups",
    "target_architecture",
    "target_config",
]

NUM_STEPS = "speculative_num_steps"
TOPK = "speculative_eagle_topk"
DRAFT_TOKENS = "speculative_num_draft_tokens"
ALGORITHM = "speculative_algorithm"


@dataclass(frozen=True, slots=True)
class ReleaseKnowledge:
    """What is known of the engine's release: exact, or bounds (None: open), and who said so."""

    release: Release | None
    low: Release | None
    high: Release | None
    evidence: Evidence | None

    def surely_from(self, first: str) -> bool:
        """The release is certainly `first` or newer."""
        low = self.release or self.low
        return low is not None and low >= Release.parse(first)

    def surely_before(self, first: str) -> bool:
        """The release is certainly older than `first`."""
        high = self.release or self.high
        return high is not None and high < Release.parse(first)

    @property
    def possible(self) -> tuple[Release, ...]:
        """The releases read that it may be; the exact one alone when known."""
        if self.release is not None:
            return (self.release,)
        return tuple(
            r
            for r in KNOWN
            if (self.low is None or r >= self.low) and (self.high is None or r <= self.high)
        )

    def __str__(self) -> str:
        if self.release is not None:
            return f"release {self.release}"
        if self.low is None and self.high is None:
            return "an unknown release"
        if self.low is not None and self.high is not None:
            return f"a release from {self.low} to {self.high}"
        return f"a release from {self.low}" if self.low else f"a release up to {self.high}"


@dataclass(frozen=True, eq=False)
class Setup:
    """One server configuration: the command asked for it, a log or the server itself shows it."""

    case: Case
    launch: Launch | None
    boot: Boot | None
    state: ServerState | None

    @property
    def engine(self) -> str:
        if self.boot is not None:
            return self.boot.engine
        return self.launch.engine if self.launch is not None else "sglang"

    def asked(self, key: str) -> Fact | None:
        """The value on the command line, None when not given (or given as none)."""
        fact = self.launch.requested.get(key) if self.launch else None
        return fact if fact is not None and fact.value is not None else None

    def logged(self, key: str) -> Fact | None:
        """The effective value as the engine itself lists it."""
        for holder in (self.boot, self.state):
            if holder is not None and key in holder.effective:
                return holder.effective[key]
        return None

    def in_force(self, key: str) -> Fact | None:
        """The effective value: as listed by the engine, else as predicted, else as asked.

        A prediction on which the possible releases from 0.4.6 on differ is none.
        """
        logged = self.logged(key)
        if logged is not None:
            return logged
        guess = prediction(self)
        value = guess.effective.get(key) if guess is not None else None
        if guess is None or value is None:
            return self._chained(key) or self.asked(key)
        if key in guess.depends_on_release and not _settled(guess, key):
            return self.asked(key)
        return Fact(value.value, "prediction", None, f"{key}={value.value!r}: {value.why}")

    def _chained(self, key: str) -> Fact | None:
        """The one prediction that flags quoted in part allow: with topk 1 steps decide."""
        if key != DRAFT_TOKENS or self.launch is None or self.launch.engine != FRAGMENT:
            return None
        steps, topk = self.asked_number(NUM_STEPS), self.asked_number(TOPK)
        if steps is None or topk != 1 or release_knowledge(self).surely_before(_OVERRIDES):
            return None
        why = f"{DRAFT_TOKENS}={steps + 1}: with topk 1 it is num_steps + 1"
        return Fact(steps + 1, "prediction", None, why)

    def number(self, key: str) -> int | None:
        """`in_force` as an integer."""
        fact = self.in_force(key)
        return as_int(fact.value) if fact else None

    @property
    def window(self) -> int | None:
        """Tokens verified per step (the draft tokens in force); None for what no engine takes."""
        tokens = self.number(DRAFT_TOKENS)
        return tokens if tokens is not None and tokens > 0 else None

    def asked_number(self, key: str) -> int | None:
        """`asked` as an integer."""
        fact = self.asked(key)
        return as_int(fact.value) if fact else None

    @property
    def algorithm(self) -> str | None:
        """The speculative algorithm in force, upper case; None without speculation."""
        fact = self.logged(ALGORITHM) or self.asked(ALGORITHM)
        return str(fact.value).upper() if fact is not None and fact.value is not None else None

    @property
    def on_cpu(self) -> bool:
        """The engine runs on a CPU, where graphs and attention backends mean something else."""
        device = self.logged("device") or self.asked("device")
        return device is not None and str(device.value).startswith("cpu")


# Older releases have no override of draft tokens; nobody has been seen to serve with them since.
_OVERRIDES = "0.4.6"
_EVERYBODY = Release.parse(_OVERRIDES)


def _settled(guess: Prediction, key: str) -> bool:
    """Whether all releases from 0.4.6 on agree on the value, though older ones do not."""
    values = {
        repr(r.effective[key].value)
        for r in guess.readings
        if r.until >= _EVERYBODY and key in r.effective
    }
    return len(values) == 1


def as_int(value: Any) -> int | None:
    """A whole number from an int, a whole float or digits; None otherwise."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.strip().lstrip("-").isdigit():
        return int(value)
    return None


def same_start(asked: Mapping[str, Fact], effective: Mapping[str, Fact]) -> bool:
    """Whether a command can have led to these effective arguments."""
    return not contradictions(asked, effective)


_PATHS = ("model_path", "speculative_draft_model_path")


def contradictions(asked: Mapping[str, Fact], effective: Mapping[str, Fact]) -> tuple[str, ...]:
    """The arguments by which a command cannot have led to these effective ones.

    Compared by what releases pass through unchanged: model, draft, algorithm and num_steps. The
    steps may also be what some release makes of them: a block drafter has one.
    """
    out: list[str] = []
    for key in (*_PATHS, NUM_STEPS, "tp_size"):
        want, have = asked.get(key), effective.get(key)
        if want is None or have is None or want.value is None or have.value is None:
            continue
        if key in _PATHS and _same_path(str(want.value), str(have.value)):
            continue
        if str(want.value) == str(have.value):
            continue
        if key != NUM_STEPS or have.value not in _outcomes(asked, key):
            out.append(key)
    plain = effective.get(ALGORITHM)
    wanted = asked.get(ALGORITHM) or asked.get(NUM_STEPS)
    if plain is not None and (plain.value is None) != (wanted is None):
        out.append(ALGORITHM)
    return tuple(out)


def _same_path(asked: str, effective: str) -> bool:
    """Whether two paths name one model: the shell expands `~` and variables, and the engine may
    list where a model that was asked for by its hub name is stored."""
    one, other = (path.rstrip("/").removeprefix("./") for path in (asked, effective))
    home = _HOME.match(one)
    if home is not None:
        return other.endswith(one[home.end() :])
    stored = f"models--{one.replace('/', '--')}/"
    if one == other or other.endswith(f"/{one}") or stored in f"{other}/":
        return True
    # "moonshotai/Kimi-K2.5" in a folder of that name; ModelScope writes "___" for a dot.
    name = one.rpartition("/")[2]
    folder = other.rpartition("/")[2]
    return (
        _HUB_NAME.fullmatch(one) is not None
        and other.startswith("/")
        and folder in (name, name.replace(".", "___"))
    )


_HOME = regex(r"~\w*|\$\w+|\$\{\w+\}")
_HUB_NAME = regex(r"\w[\w.-]*/\w[\w.-]*")


def _outcomes(asked: Mapping[str, Fact], key: str) -> set[Any]:
    """What any release makes of an argument of this command."""
    guess = predict({k: f.value for k, f in asked.items()}, None, None)
    found = [guess.effective, *(reading.effective for reading in guess.readings)]
    return {values[key].value for values in found if key in values}


@lru_cache(maxsize=16)
def setups(case: Case) -> tuple[Setup, ...]:
    """Every server configuration the case knows, the one that was measured first.

    Commands pair with log starts in order where their arguments agree; the rest stand alone.
    """
    left = list(case.launches)
    out: list[Setup] = []
    shown = [b for b in case.boots if b.effective or b.stretches or b.notices]
    for boot in shown:
        launch = next((c for c in left if same_start(c.requested, boot.effective)), None)
        if launch is not None and len(case.launches) > 1:
            left.remove(launch)
        out.append(Setup(case, launch, boot, _state_for(case, boot.effective, launch)))
    if shown and len(case.launches) == 1 and any(s.launch for s in out):
        left = []
    out += [Setup(case, launch, None, _state_for(case, {}, launch)) for launch in left]
    if not out and case.states:
        out = [Setup(case, None, None, state) for state in case.states]
    return tuple(sorted(out, key=_weight, reverse=True))


def _state_for(
    case: Case, effective: Mapping[str, Fact], launch: Launch | None
) -> ServerState | None:
    for state in case.states:
        if effective and any(
            state.effective[k].value != effective[k].value
            for k in (NUM_STEPS, DRAFT_TOKENS, "model_path")
            if k in state.effective and k in effective
        ):
            continue
        if launch is not None and not same_start(launch.requested, state.effective):
            continue
        return state
    return None


def _weight(setup: Setup) -> tuple[bool, bool, bool]:
    """Speculative first, then with decode lines, then with a command."""
    boot = setup.boot
    drafts = any(a == a for s in (boot.stretches if boot else ()) for a in s.accept_len[:50])
    return (
        setup.algorithm is not None or drafts,
        bool(boot and boot.stretches),
        setup.launch is not None,
    )


@lru_cache(maxsize=64)
def release_knowledge(setup: Setup) -> ReleaseKnowledge:
    """The release: as the person said, else as the server said, else as its log betrays."""
    case, boot = setup.case, setup.boot
    if case.engine_version is not None:
        found = Release.find(str(case.engine_version.value))
        if found is not None:
            return ReleaseKnowledge(found, found, found, case.engine_version.evidence())
    for state in (setup.state, *case.states):
        if state is not None and state.release and (found := Release.find(state.release)):
            evidence = Evidence(state.source, None, f"version: {state.release}")
            return ReleaseKnowledge(found, found, found, evidence)
    if boot is None or boot.engine != "sglang":
        return ReleaseKnowledge(None, None, None, None)
    if boot.release and (found := Release.find(boot.release)):
        where = Evidence(boot.source, boot.line, f"the log names release {found}")
        return ReleaseKnowledge(found, found, found, where)
    low = Release.find(boot.release_from) if boot.release_from else None
    high = Release.find(boot.release_until) if boot.release_until else None
    return ReleaseKnowledge(None, low, high, None)


@lru_cache(maxsize=64)
def prediction(setup: Setup) -> Prediction | None:
    """What the release makes of the command; None without an SGLang command."""
    launch = setup.launch
    if launch is None or launch.engine in ("vllm", FRAGMENT):
        return None
    target, draft = target_config(setup.case), draft_config(setup.case)
    if target is None:
        target = _target_by_name(launch)
    env = {k: str(f.value) for k, f in {**setup.case.env, **launch.env}.items()}
    asked = {k: f.value for k, f in launch.requested.items()}
    return predict(asked, target, release_knowledge(setup).release, draft=draft, env=env)


@lru_cache(maxsize=16)
def draft_config(case: Case) -> DraftConfig | None:
    """The draft's config, None when it was not given."""
    return DraftConfig.from_dict(case.draft.raw) if case.draft else None


@lru_cache(maxsize=16)
def target_config(case: Case) -> TargetConfig | None:
    """The target's config, None when it was not given."""
    return TargetConfig.from_dict(case.target.raw) if case.target else None


_BY_NAME = (
    ("kimi-k2.5", "KimiK25ForConditionalGeneration"),
    ("kimi-k2.6", "KimiK25ForConditionalGeneration"),
    ("kimi-k2", "DeepseekV3ForCausalLM"),
    ("deepseek-v3", "DeepseekV3ForCausalLM"),
    ("deepseek-r1", "DeepseekV3ForCausalLM"),
    ("llama-2-", "LlamaForCausalLM"),
    ("llama-3", "LlamaForCausalLM"),
)
# Distilled models bear their teacher's name; those that see are of another class.
_OTHER_CLASS = ("distill", "vision", "eagle", "draft")


def _by_name(name: str) -> str | None:
    """The class of a published model by its name, None for a name that does not tell."""
    low = name.lower()
    if any(word in low for word in _OTHER_CLASS):
        return None
    return next((architecture for part, architecture in _BY_NAME if part in low), None)


def _target_by_name(launch: Launch) -> TargetConfig | None:
    fact = launch.requested.get("model_path")
    architecture = _by_name(str(fact.value)) if fact is not None else None
    return TargetConfig.from_dict({"architectures": [architecture]}) if architecture else None


def target_architecture(case: Case) -> tuple[str | None, str]:
    """The target's architecture and how it is known: its config, the loaded class or its name."""
    target = target_config(case)
    if target is not None and target.architectures:
        return target.architectures[0], "target config"
    for boot in case.boots:
        for notice in boot.notices:
            kind = notice.fields.get("type", "")
            if notice.kind == "model-load" and kind and "eagle" not in kind.lower():
                return kind, f"{boot.source} line {notice.line}"
    for setup in setups(case):
        fact = setup.logged("model_path") or setup.asked("model_path")
        named = _by_name(str(fact.value)) if fact else None
        if named is not None and fact is not None:
            return named, f"the model's name {fact.value}"
    return None, "unknown"
