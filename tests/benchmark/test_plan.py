"""The plan: which jobs there are, what they share, and what is tested."""

from dataclasses import replace

import pytest

pytest.importorskip("torch")

from abstain.benchmark.plan import Plan
from abstain.benchmark.reading import default_config


def plan_of(**changes):
    return Plan(replace(default_config("glyphs", seeds=2), **changes), ("iid", "textures"))


def test_every_setting_is_trained_with_every_seed_and_one_seed_comes_before_the_next():
    plan = plan_of()
    names = [one.run.name for one in plan.networks]
    assert len(set(names)) == len(names) == 2 * (2 + 2 + 2 + 4)
    assert [one.run.seed for one in plan.networks] == [0] * 10 + [1] * 10
    trained = {one.validate.needs[0].key for one in plan.networks}
    assert len(trained) == len(names)


def test_passes_with_dropout_are_made_only_where_a_method_looks_at_them():
    for one in plan_of().networks:
        dropped = "dropout0.1" in one.run.setting
        expected = 10 if dropped and one.run.arm != "devries" else 0
        assert {one.validate.spec["samples"], one.test.spec["samples"]} == {expected}


def test_an_ensemble_is_of_all_seeds_of_a_setting_and_stands_in_each():
    plan = plan_of()
    assert [(one.run.setting, one.run.seed) for one in plan.ensembles] == [
        ("dropout0", 0),
        ("dropout0", 1),
        ("dropout0.1", 0),
        ("dropout0.1", 1),
    ]
    first, second = plan.ensembles[:2]
    assert first.test is second.test
    assert {job.name for job in first.test.needs} == {
        "test-cross-entropy-dropout0-seed0",
        "test-cross-entropy-dropout0-seed1",
    }
    assert plan_of(seeds=(3,), methods=("msr",)).ensembles == ()


def test_only_what_was_chosen_is_tested_and_the_members_of_a_chosen_ensemble():
    plan = plan_of()
    found = plan.after_choice([("devries", "dropout0"), ("ensemble", "dropout0.1")])
    assert {job.name for job in found} == {
        *(f"test-devries-dropout0-seed{s}" for s in (0, 1)),
        *(f"test-cross-entropy-dropout0.1-seed{s}" for s in (0, 1)),
        "ensemble-test-dropout0.1",
    }


def test_what_does_not_change_an_outcome_does_not_change_a_key():
    plan = plan_of()
    keys = [one.test.key for one in plan.networks]
    assert [one.test.key for one in plan_of(folder="elsewhere").networks] == keys
    trained = [one.test.needs[0].key for one in plan.networks]
    fewer = plan_of(metrics=("augrc",), samples=4)
    assert [one.test.needs[0].key for one in fewer.networks] == trained
    other = Plan(plan.config, plan.exposures, "cuda")
    assert not {one.test.needs[0].key for one in other.networks} & set(trained)
