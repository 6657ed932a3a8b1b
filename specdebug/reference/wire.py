"""Request bodies to jobs and outcomes to answers, for /generate and /v1/completions; no sockets."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specdebug.reference.engine import Engine
from specdebug.reference.scheduler import Job, Progress

# Values under which a sampling parameter changes nothing in greedy decoding.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (None, 1),
    "min_new_tokens": (None, 0),
    "frequency_penalty": (None, 0),
    "presence_penalty": (None, 0),
    "repetition_penalty": (None, 1),
    "json_schema": (None,),
    "regex": (None,),
    "ebnf": (None,),
    "structural_tag": (None,),
    "logit_bias": (None,),
    "return_logprob": (None, False),
    "return_hidden_states": (None, False),
    "image_data": (None,),
    "audio_data": (None,),
    "lora_path": (None,),
    "input_embeds": (None,),
    "echo": (None, False),
    "logprobs": (None,),
    "best_of": (None, 1),
    "suffix": (None, ""),
}


class Refused(Exception):
    """A request that gets an error answer: status and one sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass(frozen=True)
class Ask:
    """Jobs of one request; `many` says whether the answer is a list."""

    jobs: tuple[Job, ...]
    many: bool
    stream: bool
    rid: str | None = None
    usage_at_end: bool = False


def body(raw: bytes) -> dict[str, Any]:
    """The JSON object of a request. Raises Refused."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise Refused(400, "the body must be a JSON object")
    return data


def read_generate(data: Mapping[str, Any], engine: Engine) -> Ask:
    """A /generate request. Raises Refused."""
    text, ids = data.get("text"), data.get("input_ids")
    if (text is None) == (ids is None):
        raise Refused(400, "give either text or input_ids")
    params = data.get("sampling_params") or {}
    if not isinstance(params, dict):
        raise Refused(400, "sampling_params must be one object, for all prompts together")
    rid = data.get("rid")
    if rid is not None and not (isinstance(rid, str) and rid.isprintable() and len(rid) <= 128):
        raise Refused(400, "rid must be a printable text of at most 128 characters")
    prompts, many = _prompts(text if ids is None else ids, engine)
    return _ask(
        data, params, prompts, many, engine, length=params.get("max_new_tokens", 128), rid=rid
    )


def read_completion(data: Mapping[str, Any], engine: Engine) -> Ask:
    """A /v1/completions request. Raises Refused."""
    if data.get("prompt") is None:
        raise Refused(400, "prompt is missing")
    prompts, many = _prompts(data["prompt"], engine)
    options = data.get("stream_options") or {}
    if not isinstance(options, dict):
        raise Refused(400, "stream_options must be an object")
    return _ask(
        data,
        data,
        prompts,
        many,
        engine,
        length=data.get("max_tokens", 16),
        usage_at_end=bool(options.get("include_usage")),
    )


def _ask(
    data: Mapping[str, Any],
    params: Mapping[str, Any],
    prompts: list[tuple[int, ...]],
    many: bool,
    engine: Engine,
    *,
    length: Any,
    rid: str | None = None,
    usage_at_end: bool = False,
) -> Ask:
    stream = bool(data.get("stream", False))
    if stream and len(prompts) > 1:
        raise Refused(400, "stream one prompt at a time")
    for source in (data, params):
        for key, allowed in NEUTRAL.items():
            if source.get(key) not in allowed:
                raise Refused(
                    400, f"{key} = {source[key]!r}: the reference engine has no such thing"
                )
    temperature = params.get("temperature")
    if not isinstance(temperature, (int, float, type(None))) or isinstance(temperature, bool):
        raise Refused(400, "temperature must be a number")
    if temperature:
        raise Refused(
            400, f"temperature = {temperature}: the reference engine decodes greedily, send 0"
        )
    if type(length) is not int or length < 1:
        raise Refused(400, "the number of new tokens must be a whole number above 0")
    room = min(engine.context_length, engine.capacity)
    for prompt in prompts:
        if len(prompt) + length > room:
            raise Refused(
                400,
                f"{len(prompt)} prompt tokens and {length} new tokens are {len(prompt) + length}, "
                f"more than the context of {room}",
            )
    stop_ids, stop_texts = _stops(params, engine)
    jobs = tuple(Job(prompt, length, stop_ids, stop_texts, stream) for prompt in prompts)
    return Ask(jobs, many, stream, rid, usage_at_end)


def _prompts(value: Any, engine: Engine) -> tuple[list[tuple[int, ...]], bool]:
    """One prompt or several, as text or ids -> ids, and whether there were several."""
    one = isinstance(value, str) or (isinstance(value, list) and value and type(value[0]) is int)
    if not one and not (isinstance(value, list) and value):
        raise Refused(400, "a prompt must be a text, a list of token ids, or a list of those")
    if not one and len(value) > 512:
        raise Refused(400, f"{len(value)} prompts in one request: at most 512")
    return [_prompt(item, engine) for item in ([value] if one else value)], not one


def _prompt(value: Any, engine: Engine) -> tuple[int, ...]:
    if isinstance(value, str):
        ids = engine.ids(value)
    elif isinstance(value, list) and all(type(item) is int for item in value):
        ids = value
        wrong = next((item for item in ids if not 0 <= item < engine.vocab_size), None)
        if wrong is not None:
            raise Refused(400, f"token id {wrong} is outside the vocabulary of {engine.vocab_size}")
    else:
        raise Refused(400, "a prompt must be a text or a list of token ids")
    if not ids:
        raise Refused(400, "a prompt is empty")
    return tuple(ids)


def _stops(params: Mapping[str, Any], engine: Engine) -> tuple[frozenset[int], tuple[str, ...]]:
    ids = params.get("stop_token_ids") or []
    if not isinstance(ids, list) or not all(type(item) is int for item in ids):
        raise Refused(400, "stop_token_ids must be a list of token ids")
    texts = params.get("stop") or []
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not all(isinstance(t, str) and t for t in texts):
        raise Refused(400, "stop must be a text or a list of texts")
    if len(texts) > 16 or any(len(text) > 256 for text in texts):
        raise Refused(400, "stop: at most 16 texts of at most 256 characters")
    if not params.get("ignore_eos", False) and engine.end_id is not None:
        ids = [*ids, engine.end_id]
    return frozenset(ids), tuple(texts)


def generate_answer(progress: Progress, prompt_tokens: int, rid: str) -> dict[str, Any]:
    """One /generate answer, or one streamed piece of it (text and ids so far)."""
    meta = progress.meta or {
        "id": rid,
        "finish_reason": None,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": len(progress.ids),
    }
    return {"text": progress.text, "output_ids": progress.ids, "meta_info": meta}


def completion_choice(progress: Progress, index: int, text: str) -> dict[str, Any]:
    """One choice of a /v1/completions answer."""
    finish = progress.finish or {}
    return {
        "index": index,
        "text": text,
        "logprobs": None,
        "finish_reason": finish.get("type"),
        "matched_stop": finish.get("matched"),
    }


def completion_answer(
    rid: str, model: str, choices: list[dict[str, Any]], usage: dict[str, Any] | None
) -> dict[str, Any]:
    """The frame of a /v1/completions answer or streamed piece."""
    return {
        "id": rid,
        "object": "text_completion",
        "created": int(time.time()),
        "model": model,
        "choices": choices,
        "usage": usage,
    }


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    """OpenAI's usage object; no speculation fields, as in the real server."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
        "prompt_tokens_details": None,
        "reasoning_tokens": 0,
    }
