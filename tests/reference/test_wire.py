"""Request bodies: what is taken, and what is refused with one sentence."""

from typing import Any

import pytest

from specdebug.reference import server_args, variants, wire
from specdebug.reference.engine import Engine
from specdebug.reference.wire import Refused


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(server_args.resolve(["--model-path", str(variants.TARGET)]))


def ask(engine: Engine, **data: Any) -> wire.Ask:
    return wire.read_generate({"text": "def f(x):", **data}, engine)


def test_text_and_its_ids_are_the_same_request(engine: Engine) -> None:
    ids = engine.ids("def f(x):")
    by_ids = wire.read_generate({"input_ids": ids}, engine)
    assert by_ids.jobs == ask(engine).jobs
    assert by_ids.jobs[0].prompt == tuple(ids)
    assert by_ids.jobs[0].max_new_tokens == 128


def test_lists_of_texts_or_ids_are_several_jobs(engine: Engine) -> None:
    several = wire.read_generate({"text": ["a", "b", "c"]}, engine)
    assert (len(several.jobs), several.many) == (3, True)
    assert wire.read_generate({"input_ids": [[5], [6, 7]]}, engine).jobs[1].prompt == (6, 7)
    assert not ask(engine).many


def test_the_end_token_stops_unless_it_is_to_be_ignored(engine: Engine) -> None:
    assert ask(engine).jobs[0].stop_ids == {1}
    ignoring = ask(engine, sampling_params={"ignore_eos": True, "stop_token_ids": [9]})
    assert ignoring.jobs[0].stop_ids == {9}


def test_stop_may_be_one_text_or_several(engine: Engine) -> None:
    assert ask(engine, sampling_params={"stop": "\n\n"}).jobs[0].stop_texts == ("\n\n",)
    assert ask(engine, sampling_params={"stop": ["a", "b"]}).jobs[0].stop_texts == ("a", "b")


def test_a_completion_has_its_own_names_and_default_length(engine: Engine) -> None:
    request = {"prompt": "import", "stream": True, "stream_options": {"include_usage": True}}
    found = wire.read_completion(request, engine)
    assert found.jobs[0].max_new_tokens == 16
    assert (found.stream, found.usage_at_end) == (True, True)


def test_what_changes_nothing_is_taken(engine: Engine) -> None:
    params = {"temperature": 0.0, "top_p": 0.9, "top_k": 40, "n": 1, "frequency_penalty": 0.0}
    assert ask(engine, sampling_params=params, lora_path=None, return_logprob=False).jobs


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"sampling_params": {"temperature": 0.7}}, "temperature = 0.7"),
        ({"sampling_params": {"temperature": "hot"}}, "temperature must be a number"),
        ({"sampling_params": {"n": 2}}, "n = 2"),
        ({"sampling_params": {"repetition_penalty": 1.1}}, "repetition_penalty = 1.1"),
        ({"sampling_params": {"regex": "a+"}}, "regex = 'a+'"),
        ({"sampling_params": {"max_new_tokens": 0}}, "whole number above 0"),
        ({"sampling_params": {"max_new_tokens": True}}, "whole number above 0"),
        ({"sampling_params": {"max_new_tokens": 1024}}, "more than the context of 1024"),
        ({"sampling_params": {"stop": [3]}}, "stop must be a text"),
        ({"sampling_params": {"stop": [""]}}, "stop must be a text"),
        ({"sampling_params": {"stop": ["a"] * 17}}, "at most 16"),
        ({"sampling_params": {"stop_token_ids": ["a"]}}, "stop_token_ids"),
        ({"sampling_params": []}, None),
        ({"sampling_params": [{"n": 1}]}, "one object"),
        ({"return_logprob": True}, "return_logprob = True"),
        ({"input_ids": [1]}, "either text or input_ids"),
        ({"text": None}, "either text or input_ids"),
        ({"text": ""}, "a prompt is empty"),
        ({"text": []}, "a prompt must be"),
        ({"text": 5}, "a prompt must be"),
        ({"text": ["a", 5]}, "a prompt must be"),
        ({"text": None, "input_ids": [512]}, "token id 512 is outside the vocabulary of 512"),
        ({"text": None, "input_ids": [-1]}, "token id -1"),
        ({"text": ["a"] * 513}, "at most 512"),
        ({"text": ["a", "b"], "stream": True}, "one prompt at a time"),
        ({"text": "word " * 2000}, "more than the context"),
        ({"rid": 7}, "rid must be a printable text"),
        ({"rid": "a\n[2026-01-01 00:00:00] forged"}, "rid must be a printable text"),
        ({"rid": "r" * 129}, "at most 128"),
    ],
)
def test_what_cannot_run_is_refused_with_400(
    engine: Engine, data: dict[str, Any], words: str | None
) -> None:
    if words is None:  # an empty list is as good as nothing
        assert ask(engine, **data).jobs
        return
    with pytest.raises(Refused) as caught:
        ask(engine, **data)
    assert caught.value.status == 400
    assert words in caught.value.message


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b'"text"', b"\xff\xfe", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused) as caught:
        wire.body(raw)
    assert caught.value.status == 400
    assert "body" in caught.value.message
