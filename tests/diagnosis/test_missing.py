"""Every diagnosis ends with the one input that would help most."""

from typing import Any

from specdebug.diagnosis.advice import advise
from specdebug.diagnosis.diagnose import diagnose
from specdebug.diagnosis.facts import Measured, Positions, Training


def missing(case: Any) -> str:
    found = diagnose(case).missing
    return found.input if found is not None else ""


def test_nothing_at_all_needs_a_log(make: Any) -> None:
    assert "server log" in missing(make.case())


def test_the_story_lacks_the_accept_length_of_its_last_run(make: Any) -> None:
    assert missing(make.case(runs=make.story_rows())) == "the accept length of R3"


def test_a_speculative_run_alone_lacks_its_baseline(make: Any) -> None:
    lines = make.stretch([2.5] * 40)
    case = make.case(boots=[make.boot(lines, args=make.args())], engine_version="0.5.9")
    assert missing(case) == "the same load without speculation"


def test_a_command_alone_lacks_decode_lines(make: Any) -> None:
    assert "decode lines" in missing(make.case(requested=make.asked(), engine_version="0.5.9"))


def test_a_dead_draft_lacks_what_could_show_the_cause(make: Any) -> None:
    dead = make.boot(make.stretch([1.0] * 10), args=make.args())
    assert missing(make.case(boots=[dead], engine_version="0.5.9")) == "the draft's config.json"


def test_a_known_draft_without_its_training_lacks_the_layers(make: Any) -> None:
    case = make.case(
        boots=[make.boot(make.stretch([2.5] * 40), args=make.args())],
        draft_config=make.kimi_draft([1, 29, 57]),
        target_config=make.kimi_target,
        engine_version="0.5.9",
        baseline_tok_s=50.0,
    )
    assert "layers the draft was trained on" in missing(case)


def test_doubtful_acceptance_lacks_positions(make: Any) -> None:
    rows = make.story_rows()[:3]
    case = make.case(runs=rows, training=Training(val_accuracy=0.747), engine_version="0.5.9")
    assert "by position" in missing(case)


def test_a_loss_at_one_depth_lacks_a_second_depth(make: Any) -> None:
    rows = make.story_rows()[:2]
    case = make.case(runs=rows, engine_version="0.5.9")
    assert "another num_steps" in missing(case)


def test_what_could_not_be_looked_at_is_listed(make: Any) -> None:
    untried = dict(diagnose(make.case(runs=make.story_rows())).untried)
    assert "config.json" in untried["aux-layers-defaulted"]
    assert "server log" in untried["watchdog"]
    assert "slower-than-baseline" not in untried


def test_advice_for_a_run_without_baseline_begins_with_the_baseline(make: Any) -> None:
    row = Measured("R", "t", speculative=True, num_steps=3, topk=1, tok_s=(70.0,), accept_len=2.1)
    assert "without speculation" in advise(make.case(runs=[row]))[0].action


def test_known_positions_are_not_asked_for_again(make: Any) -> None:
    row = Measured("R", "t", speculative=True, num_steps=3, topk=1, tok_s=(70.0,), accept_len=2.1)
    p = Positions("p", None, "h", (0.6, 0.5, 0.4), 2000, "f", 3, 2.1)
    actions = " ".join(a.action for a in advise(make.case(runs=[row], positions=[p])))
    assert "by position" not in actions


def test_a_predicted_depth_carries_its_range(make: Any) -> None:
    found = [a for a in advise(make.case(runs=make.story_rows())) if "num_steps 3" in a.action]
    assert len(found) == 1
    assert "57 to 68" in found[0].prediction


def test_files_alone_lack_the_file_that_decides_what_they_mean(make: Any) -> None:
    draft, target = make.kimi_draft([2, 30, 58]), make.kimi_target
    header = {"midlayer.a": {"dtype": "BF16", "shape": [1]}}
    for known, wanted in (
        ({"header": header}, "the draft's config.json"),
        ({"target_config": target}, "the draft's config.json and the launch command"),
        ({"draft_config": draft}, "the target's config.json"),
        ({"draft_config": draft, "target_config": target}, "the engine's release"),
        ({"baseline_tok_s": 90.0}, "the server log from its first line"),
    ):
        found = diagnose(make.case(**known)).missing
        assert found is not None
        assert found.input == wanted, known


def test_ids_that_mean_the_same_on_every_release_lack_the_training(make: Any) -> None:
    target = {"architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 36, "hidden_size": 7168}
    case = make.case(draft_config=make.kimi_draft([1, 17, 32]), target_config=target)
    found = diagnose(case).missing
    assert found is not None
    assert "trained on" in found.input


def test_figures_that_are_not_real_lack_real_ones(make: Any) -> None:
    run = Measured("a", "b", speculative=True, num_steps=3, tok_s=(90.0,), accept_len=1.6)
    faked = make.case(runs=[run], env={"SGLANG_SIMULATE_ACC_LEN": "3"})
    assert "SIMULATE" in missing(faked)
    random = Measured(
        "a", "b", speculative=True, tok_s=(90.0,), accept_len=1.6, dataset="random-ids"
    )
    assert missing(make.case(runs=[random])) == "the accept length on real prompts"


def test_draft_tokens_adjusted_from_nobody_knows_what_need_the_command(make: Any) -> None:
    line = ("argument-warning", "speculative_num_draft_tokens is adjusted to num_steps + 1")
    lines = make.stretch([2.5] * 40)
    told = make.boot(lines, args=make.args(), notices=[line])
    found = diagnose(make.case(boots=[told], engine_version="0.5.9"))
    assert found.missing is not None
    assert found.missing.input == "the launch command"
    assert "another number was asked for" in found.missing.why
    assert "or none was asked for" in found.missing.why
    assert "draft-tokens-overridden" not in {f.code for f in found.findings}
    known = make.case(requested=make.asked(), boots=[told], engine_version="0.5.9")
    assert missing(known) == "the same load without speculation"
