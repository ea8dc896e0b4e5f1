"""Configurations of benchmarks: defaults, TOML, plain values, changes, and what is refused."""

import dataclasses
import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from abstain._foundation.toml import toml_text
from abstain.errors import AbstainError, FileFormatError, InputError
from abstain.training import OBJECTIVES
from abstain_bench.data.corruptions import CORRUPTIONS
from abstain_bench.runs.methods import METHODS, methods_of
from abstain_bench.runs.recipe import Recipe
from abstain_bench.runs.specification import (
    Arm,
    Config,
    default_config,
    from_plain,
    read_config,
    to_plain,
    to_toml_tables,
    update_config,
)
from abstain_bench.runs.tasks import TASKS

TOML = """
[benchmark]
task = "glyphs"
seeds = [3, 5]
samples = 4
metrics = ["augrc"]
folder = "~/data"

[exposures]
corruptions = ["fog"]
severities = [1, 5]

[model]
name = "vgg13"

[recipe]
epochs = 9

[arms.plain]
kind = "cross-entropy"
dropout = 0.1

[arms.deep-gamblers]
dropout = [0.0, 0.3]
stages = { warm-up = 10 }
try = { reward = [2.2, 6.0] }
recipe = { epochs = 20, learning_rate = 1 }
"""


def tables(**changes):
    """The plain values of a small configuration, with fields replaced: `arms__x__kind`."""
    results = {
        "benchmark": {"task": "glyphs", "seeds": 2},
        "arms": {"cross-entropy": {"dropout": [0.0, 0.3]}, "dg": {"kind": "deep-gamblers"}},
    }
    for name, value in changes.items():
        *above, last = name.split("__")
        place = results
        for step in above:
            place = place.setdefault(step, {})
        place[last] = value
    return results


@pytest.mark.parametrize("name", TASKS)
def test_the_default_of_every_task(name):
    config = default_config(name)
    assert config.model == TASKS[name].model
    assert config.arms[0].recipe == TASKS[name].recipe
    assert {arm.objective for arm in config.arms} == {METHODS[m].objective for m in METHODS}
    # Each once, not under other names too.
    defaults = [name for name, method in METHODS.items() if method.is_default]
    assert config.methods == tuple(name for name in defaults if not METHODS[name].same_as)
    assert config.corruptions == tuple(CORRUPTIONS)
    (gamblers,) = [arm for arm in config.arms if arm.objective == "deep-gamblers"]
    assert gamblers.option_grid["reward"] == TASKS[name].rewards
    assert set(gamblers.option_grid["reward"]) <= set(OBJECTIVES["deep-gamblers"].grid["reward"])
    assert {arm.dropout for arm in config.arms} == {(0.0, TASKS[name].dropout)}


def test_a_file_says_everything(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    path = tmp_path / "mine.toml"
    path.write_text(TOML)
    recipe = dataclasses.replace(TASKS["glyphs"].recipe, epochs=9)
    gamblers = dataclasses.replace(recipe, epochs=20, learning_rate=1)
    kinds = {"cross-entropy", "deep-gamblers"}
    assert read_config(path) == Config(
        task="glyphs",
        arms=(
            Arm("plain", "cross-entropy", recipe, (0.1,)),
            Arm(
                "deep-gamblers",
                "deep-gamblers",
                gamblers,
                (0.0, 0.3),
                {},
                {"reward": (2.2, 6.0)},
                {"warm-up": 10},
            ),
        ),
        seeds=(3, 5),
        model="vgg13",
        methods=tuple(method.name for method in methods_of(kinds)),
        metrics=("augrc",),
        samples=4,
        corruptions=("fog",),
        severities=(1, 5),
        folder="/home/me/data",
    )


@pytest.mark.parametrize("changes", [{}, {"recipe__epochs": 3, "arms__dg__recipe": {"epochs": 9}}])
def test_plain_values_survive_json_and_tables_toml(changes, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(toml_text(tables(**changes)))
    for config in (read_config(path), default_config("digits", samples=0, corruptions=[])):
        assert from_plain(json.loads(json.dumps(to_plain(config), allow_nan=False))) == config
        path.write_text(toml_text(to_toml_tables(config)))
        assert read_config(path) == config


def test_no_exposures_and_no_passes():
    config = from_plain({"task": "glyphs", "samples": 0, "corruptions": []})
    assert config.corruptions == ()
    assert not any("samples" in METHODS[name].needs for name in config.methods)


def test_methods_alone_say_what_is_trained():
    given = {"task": "glyphs", "methods": ["devries", "msr"]}
    assert [arm.name for arm in from_plain(given).arms] == ["cross-entropy", "devries"]
    config = update_config(default_config("glyphs"), methods=["dg_res"])
    assert [arm.name for arm in config.arms] == ["deep-gamblers"]


def test_what_is_not_trained_needs_no_epochs():
    # One epoch is too few for ConfidNet, which no method here asks for.
    given = {"task": "glyphs", "methods": ["msr"], "recipe": {"epochs": 1}}
    for config in (
        from_plain(given),
        default_config("glyphs", methods=["msr"], epochs=1),
        default_config("glyphs", arms=["cross-entropy"], epochs=1),
    ):
        assert [(arm.name, arm.recipe.epochs) for arm in config.arms] == [("cross-entropy", 1)]
    with pytest.raises(InputError, match="`epochs` must be at least 2"):
        default_config("glyphs", epochs=1)


def test_numbers_of_seeds_take_those_of_the_file_first():
    config = from_plain({"task": "glyphs", "seeds": [7, 3]})
    assert update_config(config, seeds=1).seeds == (7,)
    assert update_config(config, seeds=4).seeds == (7, 3, 8, 9)
    assert update_config(config, seeds=[1, 2]).seeds == (1, 2)


def test_methods_follow_what_is_left():
    config = default_config("glyphs")
    one = update_config(config, seeds=1)
    assert set(config.methods) - set(one.methods) == {"ens_msr", "ens_pe", "ens_mi"}
    # What was all of them is all of them again.
    assert update_config(one, seeds=2).methods == config.methods
    # What was chosen stays chosen.
    chosen = update_config(config, methods=["mls", "ens_pe"])
    assert update_config(chosen, seeds=1).methods == ("mls",)
    assert update_config(chosen, seeds=3).methods == ("mls", "ens_pe")


def test_what_is_not_requested_stays():
    config = from_plain({"task": "glyphs", "seeds": 2})
    assert update_config(config, seeds=None, folder=None, methods=None) == config
    other = update_config(config, folder=Path("x"), corruptions=["fog"], precision="bf16-mixed")
    assert (other.folder, other.corruptions, other.precision) == ("x", ("fog",), "bf16-mixed")
    assert other.arms == config.arms
    short = update_config(config, epochs=3, methods=["msr", "dg_res"])
    assert [(arm.objective, arm.recipe.epochs) for arm in short.arms] == [
        ("cross-entropy", 3),
        ("deep-gamblers", 3),
    ]


@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        ({"benchmark": {}}, "`task` must name the task: one of glyphs"),
        ({"benchmark__task": "glyph"}, "no task named 'glyph'.*'glyphs'"),
        ({"benchmark__task": ["glyphs"]}, "`task` must be a text"),
        ({"benchmark__seed": 2}, r"\[benchmark\] has no field 'seed'. Did you mean 'seeds'"),
        ({"benchmark": 3}, r"`benchmark` must be a table: \[benchmark\]"),
        ({"benchmark__seeds": 0}, "`seeds` must be an integer of at least 1"),
        ({"benchmark__seeds": [1, 1]}, "`seeds` must hold each value once; got 1 twice"),
        ({"benchmark__seeds": ["1"]}, "`seeds` must hold whole numbers"),
        ({"benchmark__seeds": True}, "`seeds` must be a list"),
        ({"benchmark__samples": 1}, "must be 0 or at least 2"),
        ({"benchmark__samples": "4"}, "`samples` must be an integer"),
        ({"benchmark__methods": "msr"}, "`methods` must be a list"),
        ({"benchmark__methods": [["msr"]]}, "`methods` must be a text"),
        ({"benchmark__methods": ["mrs"]}, "no method named 'mrs'.*'msr'"),
        ({"benchmark__methods": ["devries"]}, "trained with 'devries', and no arm has"),
        ({"benchmark__metrics": []}, "`metrics` must be a list that is not empty"),
        ({"benchmark__metrics": "augrc"}, "`metrics` must be a list"),
        ({"benchmark__precision": "16"}, "`precision` must be one of"),
        ({"benchmark__folder": 5}, "`folder` must be a text"),
        ({"exposures__corruptions": ["fgo"]}, "no corruption named 'fgo'.*'fog'"),
        ({"exposures__severities": [6]}, "`severities` must hold whole numbers from 1 to 5"),
        ({"exposures__severities": 3}, "`severities` must be a list"),
        ({"model__name": "small"}, "no model named 'small'"),
        ({"model__name": 5}, "`model.name` must be a text"),
        ({"recipe__epochs": "3"}, r"\[recipe\]: `epochs`"),
        ({"recipe__epoch": 3}, r"\[recipe\] has no field 'epoch'. Did you mean 'epochs'"),
        ({"arms": 5}, r"`arms` must be a table"),
        ({"arms__x": 5}, r"`arms.x` must be a table: \[arms.x\]"),
        ({"arms__x": {}}, "no objective named 'x'"),
        ({"arms__x__kind": ["x"]}, "`arms.x.kind` must be a text"),
        ({"arms__ensemble__kind": "devries"}, "must not be named 'ensemble'"),
        ({"arms__../x": {"kind": "devries"}}, "name of an arm must have"),
        ({"arms__dg__dropout": ["0.3"]}, "`arms.dg.dropout` must be a number"),
        ({"arms__dg__dropout": [0.3, 0.3]}, "`arms.dg.dropout` must hold each value once"),
        ({"arms__dg__dropout": 1.5}, r"`arms.dg.dropout` must lie in \[0, 0.99\]"),
        ({"arms__dg__options": {"rewrd": 3.0}}, r"\[arms.dg.options\] has no field 'rewrd'"),
        ({"arms__dg__stages": {"warmup": 3}}, r"no stage 'warmup'. Did you mean 'warm-up'"),
        ({"arms__dg__stages": {"warm-up": 0}}, r"\[arms.dg\]: `stages.warm-up` must be"),
        ({"arms__dg__stages": {"warm-up": 10**6}}, r"\[arms.dg\]: `epochs` must be at most"),
        ({"arms__cross-entropy__stages": {"train": 3}}, "Its stages are: none"),
        ({"arms__confidnet__stages": {"fine-tune": 3}}, "must also have 'confidence'"),
        (
            {"arms__dg__stages": {"warm-up": 3}, "arms__dg__options": {"warm_up": 0.1}},
            "`arms.dg.stages` and the option `warm_up` of arms.dg must not both be set",
        ),
        ({"arms__dg__try": {"rewrd": [3.0]}}, r"\[arms.dg.try\] has no field 'rewrd'"),
        ({"arms__dg__try": {"reward": 3.0}}, "`arms.dg.try.reward` must be a list"),
        ({"arms__dg__try": {"reward": [3.0, -1.0]}}, r"\[arms.dg\]: `reward`"),
        (
            {"arms__dg__try": {"reward": [1.0 + i for i in range(1, 102)]}},
            "at most 100 settings; got 101",
        ),
        ({"arms__dg__options": {"reward": 3.0}, "arms__dg__try": {"reward": [6.0]}}, "not both"),
        ({"arms__dg__recipe": {"epochs": 0}}, r"\[arms.dg.recipe\]: `epochs`"),
        ({"arms__dg__recipe": {"epochs": 1}}, r"\[arms.dg\]: `epochs` must be at least 2"),
        ({"arms__other": {"kind": "deep-gamblers"}}, "objectives of `arms`.*'deep-gamblers' twice"),
        ({"arm": {}}, "the configuration has no field 'arm'. Did you mean 'arms'"),
    ],
)
def test_what_cannot_be_is_refused_by_field(replaced, said, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(toml_text(tables(**replaced)))
    with pytest.raises(InputError, match=rf"^mine.toml: .*{said}"):
        read_config(path)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"arms": ["devris"]}, "no arm 'devris'. Did you mean 'devries'"),
        ({"arms": "devries"}, "`arms` must be a list"),
        ({"seeds": 10**8}, "at most 1,000"),
        ({"methods": []}, "`methods` must be a list that is not empty"),
        ({"methods": ["dg_res"], "arms": ["devries"]}, "no arm has this objective"),
        ({"methods": ["msr", "ens_msr"], "seeds": 1}, "'ens_msr' needs several networks"),
        ({"methods": ["mcd_pe"], "samples": 0}, "'mcd_pe' needs passes"),
    ],
)
def test_changes_that_cannot_be(asked, said):
    with pytest.raises(InputError, match=said):
        default_config("glyphs", **asked)


def test_what_cannot_be_requested_otherwise_raises_an_error_by_name():
    with pytest.raises(TypeError, match="'color'"):
        default_config("glyphs", color=1)
    with pytest.raises(TypeError, match="'color'"):
        update_config(default_config("glyphs"), color=1)


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        ("x = ", FileFormatError, "mine.toml is no TOML"),
        ('[benchmark]\ntask = "x"', InputError, "mine.toml: there is no task named 'x'"),
        (None, InputError, "there is no configuration"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, content, error, said):
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(error, match=said) as caught:
        read_config(path)
    assert isinstance(caught.value, AbstainError)


def test_settings_have_labels_of_their_own():
    arm = Arm("x", "deep-gamblers", Recipe(), (0.0, 0.3), option_grid={"reward": (2.2, 10.0)})
    labels = [setting.label for setting in arm.settings]
    assert labels == [f"dropout{d}-reward{r}" for d in ("0", "0.3") for r in ("2.2", "10")]
    assert arm.settings[1].options == {"reward": 10.0}
    # Their files would have one name.
    with pytest.raises(InputError, match=r"two settings named 'dropout0\.3'"):
        Arm("x", "cross-entropy", Recipe(), (0.3, 0.3000001))


def test_fewer_epochs_shorten_the_stages_in_proportion():
    config = default_config("glyphs", epochs=4, seeds=1)
    stages = {arm.name: (arm.recipe.epochs, dict(arm.stage_lengths)) for arm in config.arms}
    assert stages["confidnet"] == (4, {"confidence": 12})
    assert stages["cross-entropy"] == (4, {})
    assert from_plain({"task": "glyphs", "recipe": {"epochs": 2}}).arms[1].stage_lengths == {
        "confidence": 6
    }
    assert from_plain(to_plain(config)) == config
