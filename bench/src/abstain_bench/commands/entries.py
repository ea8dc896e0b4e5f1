"""Define the commands and catalogues that are registered as entry points."""

from typing import Any, Final

from abstain.cli.app import Command
from abstain.cli.catalogues import ListedCatalogue, describe_meaning, names_sentence

BENCHMARK_COMMAND: Final = Command(
    "Train classifiers and rank confidence scores under shifts.",
    "abstain_bench.commands.benchmark:benchmark",
)
DATA_COMMAND: Final = Command(
    "Download and list published data sets.", "abstain_bench.commands.data:data"
)
STUDY_COMMAND: Final = Command(
    "Reproduce studies from the literature.",
    "abstain_bench.commands.study:study",
)


def _describe_study(study: Any) -> tuple[str, ...]:
    return study.question, study.source


def _describe_protocol(protocol: Any) -> tuple[str, ...]:
    return protocol.meaning, names_sentence("Tasks", protocol.tasks), protocol.source


def _describe_table(table: Any) -> tuple[str, ...]:
    doubts = (doubt.text for doubt in table.doubts)
    return f"Scale: {table.scale}.", *doubts, table.source


def _describe_score(score: Any) -> tuple[str, ...]:
    fitted = f", fitted on {score.fitted_on}" if score.fitted_on else ""
    return f"For networks trained with {score.objective}{fitted}.", score.source


def _describe_model(model: Any) -> tuple[str, ...]:
    side = f"{model.side} x {model.side}" if model.side else f"from {model.min_side} px"
    return f"Images: {side}.", model.source


SCORES: Final = ListedCatalogue(
    "Scores of the networks of a benchmark",
    "For `abstain benchmark run --methods`; in Python: abstain_bench.runs.methods",
    "abstain_bench.runs.methods:METHODS",
    _describe_score,
)

STUDIES: Final = ListedCatalogue(
    "Studies of the literature",
    "For `abstain study NAME`",
    "abstain_bench.studies:STUDIES",
    _describe_study,
)

MODELS: Final = ListedCatalogue(
    "Networks",
    "For `abstain benchmark run --model` and `abstain study finetune --model`",
    "abstain_bench.networks:MODELS",
    _describe_model,
    needs_torch=True,
)

DATASETS: Final = ListedCatalogue(
    "Data sets",
    "For configurations of `abstain study finetune`; in Python: abstain_bench.data",
    "abstain_bench.data:DATASETS",
    describe_meaning,
)

PROTOCOLS: Final = ListedCatalogue(
    "Settings of published benchmarks",
    "For `abstain benchmark run --protocol`",
    "abstain_bench.runs.specification:PROTOCOLS",
    _describe_protocol,
)

CORRUPTIONS: Final = ListedCatalogue(
    "Image corruptions with five severities",
    "For `abstain benchmark run --corruptions`; in Python: abstain_bench.data.corruptions.corrupt",
    "abstain_bench.data.corruptions:CORRUPTIONS",
    describe_meaning,
)

TASKS: Final = ListedCatalogue(
    "Tasks of the benchmark",
    "For `abstain benchmark run TASK`; in Python: abstain_bench.runs.tasks",
    "abstain_bench.runs.tasks:TASKS",
    describe_meaning,
)

PUBLISHED: Final = ListedCatalogue(
    "Published tables",
    "For abstain_bench.published.table(NAME)",
    "abstain_bench.published:tables",
    _describe_table,
)
