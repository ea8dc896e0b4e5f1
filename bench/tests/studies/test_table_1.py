"""Table 1 of the paper beside a fine-tuning experiment, and the recipe that the paper has."""

import pytest

pytest.importorskip("torch")

from abstain_bench import published
from abstain_bench.networks import MODELS
from abstain_bench.studies.finetuning import conclusions as paper
from abstain_bench.studies.finetuning.experiment import (
    override_experiment,
    packaged_configuration,
    read_experiment,
)

CELLS = published.table("population_aurc_table_1")


def experiment(model, data="cifar10"):
    return override_experiment(
        read_experiment(packaged_configuration(data)), data=data, model=model
    )


def rows_of(result):
    """Values of two seeds: the objective's place, more for the cross-entropy."""
    return [
        {"objective": c.name, "seed": seed, "loss": loss, "metric": "aurc_plugin",
         "value": (i + 1) / 100 + seed / 1000 + (loss == "cross_entropy")}
        for i, c in enumerate(result.objectives)
        for seed in (0, 1)
        for loss in ("zero_one", "cross_entropy")
    ]  # fmt: skip


def test_every_network_of_the_table_is_there():
    assert set(paper.NETWORKS.values()) == {cell["classifier"] for cell in CELLS}
    assert set(paper.NETWORKS) <= set(MODELS)


def test_the_shipped_recipe_is_that_of_the_paper():
    stated = {
        row["setting"]: row["value"]
        for row in published.table("settings")
        if row["paper"] == "population_aurc"
    }
    for data in ("cifar10", "cifar100"):
        for contender in experiment("vgg16-bn", data).objectives:
            recipe = contender.settings[0].recipe
            assert recipe.epochs == int(stated["fine-tuning epochs"])
            assert recipe.learning_rate == float(stated["fine-tuning learning rate"])
            assert recipe.batch_size == int(stated["fine-tuning batch size"])
        assert len(experiment("vgg16-bn", data).seeds) == int(stated["fine-tuning seeds"])


def test_both_areas_stand_beside_what_is_printed():
    result = experiment("resnet18-cifar")
    chosen = {c.name: 0 for c in result.objectives}
    table = paper.compare_with_table_1(result, rows_of(result), chosen)
    # The four objectives of the paper alone, not those with a queue or soft ranks.
    assert [row["table_1"] for row in table] == [4.967, 4.470, 4.473, 4.471]
    assert table[0]["table_1_deviation"] == 0.038
    assert table[1]["AURC_x100"] == pytest.approx(2.05)
    assert table[1]["AURC_x100_deviation"] == pytest.approx(0.1 / 2**0.5)
    assert table[1]["AURC_of_CE_x100"] == pytest.approx(102.05)
    (said,) = paper.conclude_order(result, table)
    assert "table 1 of the paper has SELE < AURC, log weights < AURC, harmonic weights < cr" in said
    assert (
        "this run has cross-entropy < SELE < AURC, harmonic weights < AURC, log weights (0/1 err"
        in said
    )
    level = [dict(row, AURC_x100=3.0) for row in table]
    assert (
        "this run has cross-entropy = SELE = AURC, harmonic weights"
        in paper.conclude_order(result, level)[0]
    )


@pytest.mark.parametrize(("model", "data"), [("preresnet-20", "cifar10"), ("small-conv", "digits")])
def test_other_networks_and_data_have_none(model, data):
    result = experiment(model, data)
    chosen = {c.name: 0 for c in result.objectives}
    assert paper.compare_with_table_1(result, rows_of(result), chosen) == []
    assert paper.conclude_order(result, []) == []


def test_cells_that_are_not_printed_are_left_out():
    result = experiment("resnet34-cifar")
    table = paper.compare_with_table_1(
        result, rows_of(result), {c.name: 0 for c in result.objectives}
    )
    assert [row["table_1"] for row in table] == [6.464, 5.651]
    # An objective that was lost has no row.
    assert len(paper.compare_with_table_1(result, rows_of(result), {"ce": 0})) == 1
