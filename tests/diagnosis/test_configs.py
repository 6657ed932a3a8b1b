"""A command that names --config: with the file its arguments are known, without it they are not."""

from __future__ import annotations

from specdebug.diagnosis.case import Case, Input, build_case
from specdebug.diagnosis.diagnose import diagnose

COMMAND = "python -m sglang.launch_server --config {path} --max-running-requests 4\n"
BODY = (
    "model-path: m\nspeculative-algorithm: EAGLE3\nspeculative-num-steps: 3\n"
    "speculative_eagle_topk: 1\nspeculative-num-draft-tokens: 16\nmax-running-requests: 32\n"
)


def case_of(**files: str) -> Case:
    return build_case([Input(n.replace("__", "."), t.encode()) for n, t in files.items()])


def test_the_file_completes_the_command_and_the_command_line_wins() -> None:
    case = case_of(serve__yaml=BODY, command__txt=COMMAND.format(path="/srv/serve.yaml"))
    (launch,) = case.launches
    assert launch.requested["max_running_requests"].value == 4
    assert launch.requested["speculative_num_draft_tokens"].source == "serve.yaml"
    assert "draft-tokens-overridden" in {f.code for f in diagnose(case).findings}
    assert not any("--config" in given.summary for given in case.inputs)


def test_a_body_pasted_below_the_command_is_its_file() -> None:
    case = case_of(paste=f"{COMMAND.format(path='serve.yaml')}\n# serve.yaml\n{BODY}")
    (launch,) = case.launches
    assert launch.requested["speculative_num_steps"].line == 6
    assert launch.requested["max_running_requests"].value == 4


def test_without_the_file_it_is_said_and_nothing_follows_from_what_is_absent() -> None:
    case = case_of(command__txt=COMMAND.format(path="a.yaml --speculative-algorithm EAGLE3"))
    assert "--config a.yaml is not among the inputs" in case.inputs[0].summary
    assert {f.code for f in diagnose(case).findings} == set()


def test_another_commands_file_is_not_taken() -> None:
    case = case_of(other__yaml=BODY, command__txt=COMMAND.format(path="serve.yaml"))
    assert "is not among the inputs" in case.inputs[1].summary
    assert "speculative_num_steps" not in case.launches[-1].requested


def test_a_yaml_file_alone_still_says_what_was_asked() -> None:
    found = diagnose(case_of(serve__yaml=BODY))
    assert found.values["requested_draft_tokens"] == 16
