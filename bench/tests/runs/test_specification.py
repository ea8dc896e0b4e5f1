"""The specification: which jobs there are, what they share, and what is tested."""

from dataclasses import replace

import pytest

pytest.importorskip("torch")

from abstain.training import OBJECTIVES
from abstain.training.objective import WARM_UP
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.specification import Arm, Specification, default_config
from abstain_bench.runs.specification.arms import WARM_UPS


def plan_of(**changes):
    return Specification(replace(default_config("glyphs", seeds=2), **changes), ("iid", "textures"))


def test_every_setting_is_trained_with_every_seed_and_one_seed_comes_before_the_next():
    plan = plan_of()
    names = [network.run.name for network in plan.networks]
    assert len(set(names)) == len(names) == 2 * (2 + 2 + 2 + 4)
    assert [network.run.seed for network in plan.networks] == [0] * 10 + [1] * 10
    trained = {network.validate.needs[0].key for network in plan.networks}
    assert len(trained) == len(names)


def test_passes_with_dropout_are_made_only_where_a_method_looks_at_them():
    for network in plan_of().networks:
        dropped = "dropout0.1" in network.run.setting
        expected = 10 if dropped and network.run.arm != "devries" else 0
        assert {network.validate.spec["samples"], network.test.spec["samples"]} == {expected}


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
    result = plan.test_jobs([("devries", "dropout0"), ("ensemble", "dropout0.1")])
    assert {job.name for job in result} == {
        *(f"test-devries-dropout0-seed{s}" for s in (0, 1)),
        *(f"test-cross-entropy-dropout0.1-seed{s}" for s in (0, 1)),
        "ensemble-test-dropout0.1",
    }


def test_what_does_not_change_an_outcome_does_not_change_a_key():
    plan = plan_of()
    keys = [network.test.key for network in plan.networks]
    assert [network.test.key for network in plan_of(folder="elsewhere").networks] == keys
    trained = [network.test.needs[0].key for network in plan.networks]
    fewer = plan_of(metrics=("augrc",), samples=4)
    assert [network.test.needs[0].key for network in fewer.networks] == trained
    other = Specification(plan.config, plan.exposures, "cuda")
    assert not {network.test.needs[0].key for network in other.networks} & set(trained)


def test_what_is_short_comes_last_in_its_seed():
    """A process that is done waits for the other's job at most, and that is no long one then."""
    plan = plan_of()
    names = [job.name for job in plan.jobs_before_selection() if job.name.startswith("train-")]
    of_seed = [[name for name in names if name.endswith(f"seed{seed}")] for seed in (0, 1)]
    assert names == [*of_seed[0], *of_seed[1]]
    for own in of_seed:
        assert ["confidnet" in name for name in own] == [False] * 8 + [True] * 2
    tests = [
        job.spec["samples"]
        for job in plan.test_jobs({(n.run.arm, n.run.setting) for n in plan.networks})
    ]
    assert tests == ([10] * 4 + [0] * 6) * 2


def starts(plan):
    """What each network of DeepGamblers begins with alike, by its setting and seed."""
    return {
        (network.run.setting, network.run.seed): network.validate.needs[0].warm_up_file
        for network in plan.networks
        if network.run.arm == "deep-gamblers"
    }


def with_options(plan, **options):
    arms = (replace(arm, options=options) for arm in plan.config.arms if "gamblers" in arm.name)
    return plan_of(arms=tuple(arms), methods=("dg_res",))


def test_settings_that_differ_in_what_comes_after_a_warm_up_begin_alike():
    plan = plan_of()
    result = starts(plan)
    assert len(result) == 8
    for (setting, seed), start in result.items():
        assert start == result[setting.replace("reward6", "reward2.2"), seed] != ""
    assert len(set(result.values())) == 4
    others = [one for one in plan.networks if one.run.arm != "deep-gamblers"]
    assert not any(one.validate.needs[0].warm_up_file for one in others)
    # None without a warm-up, and another where it is trained otherwise.
    assert set(starts(with_options(plan, warm_up=0.0)).values()) == {""}
    assert not set(starts(with_options(plan, warm_up=0.5)).values()) & set(result.values())


def test_a_setting_that_is_alone_leaves_nothing_for_others():
    arm = Arm("deep-gamblers", "deep-gamblers", Recipe(), option_grid={"reward": (3.0,)})
    assert set(starts(plan_of(arms=(arm,), methods=("dg_res",))).values()) == {""}


def test_what_is_known_of_warm_ups_is_so():
    """The share by default, and that nothing of the options is looked at before it is over."""
    for kind, (share, later) in WARM_UPS.items():
        known = OBJECTIVES[kind]
        assert known.options["warm_up"] == share
        assert set(later) <= set(known.options)
        assert known.make(rng=0).phases[0].name == WARM_UP


def classifiers(plan):
    """The classifier that each network of ConfidNet begins with, and those of cross-entropy."""
    of = {"confidnet": [], "cross-entropy": []}
    for network in plan.networks:
        if network.run.arm in of:
            (first,) = network.validate.needs
            of[network.run.arm] += first.needs or [first]
    return of["confidnet"], of["cross-entropy"]


def test_confidnet_begins_with_the_classifier_of_cross_entropy_which_is_trained_once():
    plan = plan_of()
    begun, plain = classifiers(plan)
    assert [job.stem for job in begun] == [job.stem for job in plain]
    trained = [job for job in plan.jobs_before_selection() if job.name.startswith("train-")]
    assert len({job.stem for job in trained}) == len(plan.networks)
    order = [job.stem for job in plan.jobs_before_selection()]
    for network in plan.networks:
        for job in network.validate.needs:
            assert all(order.index(need.stem) < order.index(job.stem) for need in job.needs)


def test_without_an_arm_of_its_own_the_classifier_is_the_same_job():
    whole = plan_of()
    arms = tuple(arm for arm in whole.config.arms if arm.objective == "confidnet")
    alone = plan_of(arms=arms, methods=("confidnet",))
    assert [j.stem for j in classifiers(alone)[0]] == [j.stem for j in classifiers(whole)[0]]


def test_a_classifier_that_is_trained_otherwise_is_another_job():
    plan = plan_of()
    other = [
        replace(arm, recipe=replace(arm.recipe, epochs=7)) if arm.objective == "confidnet" else arm
        for arm in plan.config.arms
    ]
    begun, plain = classifiers(plan_of(arms=tuple(other)))
    assert not {job.key for job in begun} & {job.key for job in plain}
    assert begun[0].name == "train-confidnet-classifier-dropout0-seed0"
    assert begun[0].spec["recipe"]["epochs"] == 7


@pytest.mark.parametrize(
    ("task", "lengths"),
    [
        ("cifar10", (250, 200, 20)),
        ("cifar100", (250, 200, 20)),
        ("svhn", (100, 200, 20)),
        ("entity13", (300, 200, 20)),
        ("iwildcam", (12, 5, 3)),
        ("iwildcam-open-2", (12, 5, 3)),
        ("camelyon17", (5, 3, 1)),
        ("glyphs", (16, 48)),
        ("digits8", (20, 16)),
    ],
)
def test_the_stages_equal_those_of_fd_shifts(task, lengths):
    """Jaeger et al. 2023, table 4: epochs, then "ConfidNet-epochs"; MSR has the first number."""
    arms = {arm.objective: arm for arm in default_config(task, seeds=1).arms}
    arm = arms["confidnet"]
    shares, epochs = OBJECTIVES["confidnet"].shares_of_stages(arm.recipe.epochs, arm.stage_lengths)
    plan = [p.name for p in OBJECTIVES["confidnet"].make(**arm.options, **shares).plan(epochs)]
    assert tuple(plan.count(name) for name in dict.fromkeys(plan)) == lengths
    assert arms["cross-entropy"].recipe.epochs == lengths[0]
    assert {arm.classifier_length(setting) for setting in arm.settings} == {lengths[0]}


@pytest.mark.parametrize("epochs", [3, 7, 20, 50, 470])
@pytest.mark.parametrize(
    "options", [{}, {"confidence_share": 0.3}, {"confidence_share": 0.45, "fine_tune": 0.043}]
)
def test_the_epochs_of_a_classifier_are_known_without_its_objective(epochs, options):
    arm = Arm("confidnet", "confidnet", Recipe(epochs=epochs), options=options)
    plan = OBJECTIVES["confidnet"].make(**options).plan(epochs)
    assert arm.classifier_length(arm.settings[0]) == plan.count(plan[0])
