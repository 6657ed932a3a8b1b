"""What a column's title means: the field it fills and the words in it that name a run."""

from __future__ import annotations

from typing import Any

from specdebug.sglang.patterns import regex
from specdebug.sglang.run_names import side_of

# First line, last line and fields of one run.
Found = tuple[int, int, dict[str, Any]]
WHOLE = frozenset(
    [
        "max_concurrency",
        "completed",
        "input_tokens",
        "output_tokens",
        "batch_size",
        "num_steps",
        "topk",
        "requested_draft_tokens",
    ]
)


def typed(field: str, value: float) -> Any:
    """The value as the field's type."""
    return int(value) if field in WHOLE and value == int(value) else value


# A title without a field is of no figure used here, though a later pattern would take it.
_HEADERS: tuple[tuple[str, str | None], ...] = (
    ("(?:input|prefill|prompt).*(?:tok|throughput)", None),
    # What is drafted or accepted in a second is no output, and a gain no speed.
    ("(?:draft(?:ed)?|accepted)[ _](?:throughput|tok\\w*\\s*/\\s*s)", None),
    ("speed-?[ _]?up|\\bgain\\b|\\bratio\\b|\\bchange|improve|\\bdelta\\b|\u0394", None),
    ("(?:total|overall).*(?:tok\\w*\\s*/|throughput)", "total_tok_s"),
    ("draft tokens (?:used|effective|in force)|effective draft", "draft_tokens"),
    ("draft[ _]?tokens?|num[ _]draft|window", "requested_draft_tokens"),
    ("accept\\w*[ _]*len\\w*|acc[ _]?len\\w*|^al$|mean acceptance|tau", "accept_len"),
    ("accept\\w*[ _]*rate|acc[ _]?rate", "accept_rate"),
    ("num[ _]?steps?|^steps?$|spec\\w* steps?", "num_steps"),
    ("step[ _]?(?:time|ms)|ms/step", "step_ms"),
    ("top[ _-]?k", "topk"),
    ("ttft|time to first tok", "mean_ttft_ms"),
    ("tpot|time per (?:output )?tok", "mean_tpot_ms"),
    ("concurren|parallel", "max_concurrency"),
    ("batch|^bs$", "batch_size"),
    ("req\\w*\\s*/\\s*s|rps|qps", "request_s"),
    (
        "tok\\w*\\s*/\\s*s|tok\\w*[ _]per[ _]s|tok\\w*_s(?:ec)?$|throughput|\\btps\\b|speed",
        "output_tok_s",
    ),
    ("^run$|name|label|config\\w*|setting|variant|case|\\bmode\\b|method|^$", "label"),
)
# The same in Chinese, looked for first: a unit in brackets would tell less than the words.
_IN_CHINESE: tuple[tuple[str, str | None], ...] = (
    ("(?:输入|预填充|提示).*(?:吞吐|速度|tok|长度)|加速|提升|增益|倍数|变化", None),
    ("请求(?:吞吐|速率)", "request_s"),
    ("总吞吐", "total_tok_s"),
    ("草稿\\s*(?:tok|词|长度|数)|验证窗口", "requested_draft_tokens"),
    ("接[受收](?:长度|数)|命中长度", "accept_len"),
    ("接[受收]率|命中率", "accept_rate"),
    ("(?:草稿|投机)步数|^步数$", "num_steps"),
    ("单步|每步|步(?:耗时|时间)", "step_ms"),
    ("首\\s*(?:字|词|tok\\w*)", "mean_ttft_ms"),
    ("每\\s*(?:个)?\\s*(?:输出)?\\s*(?:字|词|tok\\w*)\\s*(?:延迟|耗时|时间|时延)", "mean_tpot_ms"),
    ("并发|并行请求", "max_concurrency"),
    ("批大小|批量|批次|批处理", "batch_size"),
    ("吞吐|(?:输出|生成|解码)速[度率]|^速[度率]", "output_tok_s"),
    ("配置|设置|方案|模式|方法|名称|实验|运行", "label"),
)
_TITLES = tuple((regex(f"(?i){p}"), field) for p, field in (*_IN_CHINESE, *_HEADERS))

# One of these stands in every title of a figure; a line without one is no header, whatever
# separates its cells, and thousands of progress bars are such lines.
_IN_TITLES = (
    *(
        "tpot",
        "tok",
        "throughput",
        "tps",
        "speed",
        "acc",
        "tau",
        " al",
        "step",
        "req",
        "rps",
        "qps",
    ),
    *("吞吐", "接受", "接收", "速度", "速率", "每步", "单步", "命中"),
)
_BETWEEN_CELLS = str.maketrans(dict.fromkeys('|,*`"\t', " "))


def may_be_header(lines: list[str]) -> bool:
    """Whether some word of a figure's title stands in the lines."""
    low = " ".join(["", *lines]).lower().translate(_BETWEEN_CELLS)
    return any(word in low for word in _IN_TITLES)


def _entry(title: str) -> tuple[bool, str | None]:
    """Whether the title is known, and its field."""
    return next(((True, f) for pattern, f in _TITLES if pattern.search(title)), (False, None))


def field_of(title: str) -> str | None:
    """The field of BenchRun that a column fills, None for one that fills none."""
    return _entry(title)[1]


# "draft tok/s": what is drafted in a second, or the speed of the run with the draft.
_WITH_DRAFT = regex(
    r"(?i)^\W*(?:(?:target|base)\s*(?:\+|plus|and|with|w/)\s*|with\s+|w/\s*)?(?:the\s+)?draft\s+"
    r"(?:throughput|tok\w*\s*/\s*s)"
)


def fields_of(header: list[str]) -> list[str | None]:
    """The field of each column, where the others tell as well.

    Beside a plain run's speed, and with no other drafting run's, "draft tok/s" is the speed with
    the draft.
    """
    fields = [field_of(title) for title in header]
    sides = [
        side_of(t)
        for t, f in zip(header, fields, strict=True)
        if f in ("output_tok_s", "total_tok_s")
    ]
    drafts = [at for at, title in enumerate(header) if _WITH_DRAFT.search(title)]
    if len(drafts) == 1 and "plain" in sides and "drafting" not in sides:
        fields[drafts[0]] = "output_tok_s"
    return fields


# Figures that tables have and no rule asks for.
_UNUSED = regex(
    r"(?i)latenc|\btime\b|时间|延迟|时延|耗时|duration|elapsed|p\d\d|percentile|median|std|\bitl\b|inter-token|e2e"
    r"|request|请求|prompts|samples|样本|questions|\btp\b|\bdp\b|\bep\b|\bpp\b|gpus?\b|显卡|卡数|memory"
    r"|显存|cost|price|score|accuracy|精度|准确|gsm8k|mmlu|temperature|seed|#|^n$|\bid\b|date|日期"
    r"|input|output|isl|osl|context|上下文|输入|输出|长度|length|repeats?|trial|iteration|版本|version"
    r"|release|commit"
)


def is_known(title: str) -> bool:
    """Whether it is known what a column holds, used here or not."""
    return _entry(title)[0] or _UNUSED.search(title) is not None


# A speed of a part or of an extreme is no run of its own.
_DERIVED = regex(
    r"(?i)(?:per|/)[ -]?(?:gpu|user|req\w*|card|chip|device|node|stream|client)|goodput|\bpeak\b"
    r"|(?<![a-z0-9])p\d\d(?![0-9])|\d\dth\b"
    r"|(?<![a-z])(?:max|min|std)(?:imum)?(?![a-z])|\b(?:best|worst|lowest|highest)\b|每卡|单卡|每用户|单用户|单路|峰值"
)


def is_derived(title: str) -> bool:
    """Whether a title is of a share or an extreme of a figure: per GPU, per user, peak, p99."""
    return _DERIVED.search(title) is not None


_MIDDLE = regex(r"(?i)median|(?<![a-z0-9])p50(?![0-9])|中位")
# Of these a table may hold extremes and shares beside the figure itself.
_RANKED = frozenset(
    ("output_tok_s", "total_tok_s", "request_s", "accept_len", "accept_rate", "step_ms")
) | {"mean_tpot_ms", "mean_ttft_ms"}


def best_titles(header: list[str], fields: list[str | None]) -> list[str | None]:
    """The fields with each but once: of several columns the figure itself, then its middle.

    Goodput, percentiles, extremes and shares fill a field only where nothing better does.
    """
    fields = _over_all_gpus(header, fields)
    best: dict[str, int] = {}
    for at, field in enumerate(fields):
        if field is None:
            continue
        rank = _rank(header[at], field)
        if field not in best or (field in _RANKED and rank < _rank(header[best[field]], field)):
            best[field] = at
    return [field if field and best[field] == at else None for at, field in enumerate(fields)]


def _rank(title: str, field: str) -> int:
    if _MIDDLE.search(title):
        return 2
    if is_derived(title):
        return 3
    # "throughput | output throughput": the first counts something else as well.
    return 0 if field != "output_tok_s" or _GIVEN_OUT.search(title) else 1


_GIVEN_OUT = regex(r"(?i)output|输出")
_OUTPUT = regex(r"(?i)output|generat|decod|输出|生成|解码")
_PROMPTS = regex(r"(?i)(?:input|prefill|prompt).*(?:tok|throughput)|(?:输入|预填充).*(?:吞吐|tok)")


def _over_all_gpus(header: list[str], fields: list[str | None]) -> list[str | None]:
    """ "tok/s per GPU | total tok/s": a total beside shares only is that of all GPUs.

    Beside a speed of the prompts, or a share that is called output, it may count the prompts too.
    """
    speeds = [t for t, f in zip(header, fields, strict=True) if f == "output_tok_s"]
    shares = all(is_derived(t) and not _OUTPUT.search(t) for t in speeds)
    if shares and not any(map(_PROMPTS.search, header)):
        return ["output_tok_s" if field == "total_tok_s" else field for field in fields]
    return fields


_FIGURE_WORDS = regex(
    r"(?i)\([^)]*(?:/\s*s|ms|%|per s)[^)]*\)"
    r"|(?<![a-z])(?:tok(?:en)?s?\s*/\s*s(?:ec)?|t/s|req\w*/s|output|decod\w+|gen|generat\w+|total"
    r"|overall|mean|avg|average|median|throughput|speed|tokens?|toks?|tps|per|sec|seconds?"
    r"|accept\w*|acc|al|len|length|rate|step|time|ms|s|tpot|ttft|itl|latency)(?![a-z])"
    r"|输出|生成|解码(?!算法)|吞吐量?|速[度率]|接[受收]|长度|率|平均|延迟"
)
_FILLING = frozenset(
    ("with", "w", "using", "the", "our", "enabled", "on", "for", "run", "of", "in")
)
_WORD = regex(r"[^\W_]+")


def run_words(title: str) -> frozenset[str]:
    """The words of a title that are not its figure's: those that name a run."""
    rest = _FIGURE_WORDS.sub(" ", title.lower().replace("w/o", "without"))
    words = frozenset(_WORD.findall(rest))
    return words - _FILLING or words
