"""The catalogues that `abstain list` prints."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, Final

from abstain._foundation import plugins
from abstain._foundation.lazy_imports import lazy_function
from abstain.errors import InputError


@dataclass(frozen=True)
class ListedCatalogue:
    """A catalogue that `abstain list` prints.

    A package adds a catalogue with an entry point of the group ``abstain.catalogues``. The name of
    the entry point is the word after `abstain list`, and its value is the location of a
    `ListedCatalogue`. If there is already a catalogue for this word, the new catalogue is printed
    after it.
    """

    title: str
    #: Description of the places where names of entries are used.
    usage: str
    #: Location of a mapping from name to entry, or of a function that returns it: ``module:name``.
    entries: str
    #: Function that returns the sentences below the title of an entry.
    describe: Callable[[Any], Iterable[str]]
    #: Entries in addition to those of `entries`.
    extra_entries: tuple[Any, ...] = ()
    #: Whether the import of the entries requires torch.
    needs_torch: bool = False
    #: Function that returns the end of `usage`, if it depends on the module of the entries.
    usage_suffix: Callable[[], str] = str
    #: Reason why the catalogue cannot be loaded, or an empty string.
    error: str = ""


def all_catalogues() -> dict[str, tuple[ListedCatalogue, ...]]:
    """Return the catalogues of this package and of extensions, by the word after `abstain list`."""
    catalogues = dict(CATALOGUES)
    for extension in plugins.extensions(plugins.CATALOGUES):
        name = extension.name
        catalogues[name] = (*catalogues.get(name, ()), _load_catalogue(extension))
    return catalogues


def _load_catalogue(extension: EntryPoint) -> ListedCatalogue:
    try:
        catalogue: ListedCatalogue = plugins.load_extension(extension, ListedCatalogue)
    except InputError as error:
        # The other catalogues are still printed, and `abstain list` prints the reason.
        return ListedCatalogue(str(error), "", extension.value, tuple, error=str(error))
    return catalogue


def _needs_sentence(needs: Iterable[Any]) -> str:
    listed = ", ".join(sorted(need.value.removeprefix("needs ") for need in needs))
    return f"Needs {listed}." if listed else ""


def names_sentence(title: str, names: Iterable[str]) -> str:
    """Return a sentence with a title and names, or an empty string if there are no names."""
    listed = ", ".join(dict.fromkeys(names))
    return f"{title}: {listed}." if listed else ""


def _metric(metric: Any) -> tuple[str, ...]:
    identity, measurement = metric.identity, metric.measurement
    best = "low" if identity.lower_is_better else "high"
    span = f"Best {best}, from {measurement.low:g} to {measurement.high:g}."
    needs = _needs_sentence(measurement.needs)
    return identity.convention, f"{span} {needs}", identity.source


def _fitted_score(score: Any) -> tuple[str, ...]:
    options = names_sentence("Options", (*score.required, *score.options))
    return f"{options} {_needs_sentence(score.to_fit)}", score.source


def _rule(rule: Any) -> tuple[str, ...]:
    losses = f"Losses: {rule.loss}."
    return (
        f"Guarantees: {rule.guarantee}. {losses}",
        names_sentence("Options", rule.options),
        rule.source,
    )


@dataclass(frozen=True)
class _Logits:
    """A simulated population, which is listed although it belongs to no catalogue."""

    name: str = "logits"
    title: str = "labeled class scores"
    meaning: str = "Gaussian classes, for studies over scores; in Python ab.simulate.logits."


def describe_meaning(entry: Any) -> tuple[str, ...]:
    """Return the definition and the source of an entry."""
    return entry.meaning, getattr(entry, "source", "")


#: Catalogues by the word after `abstain list`.
CATALOGUES: Final[dict[str, tuple[ListedCatalogue, ...]]] = {
    "metrics": (
        ListedCatalogue(
            "Metrics of a confidence score",
            "Also with custom parameters: ",
            "abstain.metrics:METRICS",
            _metric,
            usage_suffix=lazy_function("abstain.metrics.catalogue:describe_numbered_names"),
        ),
    ),
    "scores": (
        ListedCatalogue(
            "Confidence scores",
            "With a temperature: msr@T=1.5. Confidence columns of a file are used by their names",
            "abstain.confidence:SCORES",
            lambda s: (_needs_sentence(s.needs), s.source),
        ),
        ListedCatalogue(
            "Scores that are fitted first",
            "From Python: ab.fit_score(NAME, predictions), ab.select_score(NAME, ...)",
            "abstain.confidence:FITTED",
            _fitted_score,
        ),
    ),
    "losses": (
        ListedCatalogue(
            "Losses that define an error",
            "For --loss",
            "abstain.predictions:LOSSES",
            lambda loss: (loss.source,),
        ),
    ),
    "rules": (
        ListedCatalogue(
            "Rules that choose a threshold",
            "For `abstain threshold --method` and ab.thresholds.fit",
            "abstain.thresholds:RULES",
            _rule,
        ),
    ),
    "populations": (
        ListedCatalogue(
            "Simulated populations with known true values",
            "For `abstain study NAME --population` and ab.simulate.make",
            "abstain.simulate:POPULATIONS",
            describe_meaning,
            extra_entries=(_Logits(),),
        ),
    ),
    "objectives": (
        ListedCatalogue(
            "Training objectives of networks",
            "For abstain.training.make; the first three also for configurations of "
            "`abstain study finetune`",
            "abstain.training:OBJECTIVES",
            lambda k: (k.meaning, names_sentence("Options", k.options), k.source),
            needs_torch=True,
        ),
    ),
    "rank-weights": (
        ListedCatalogue(
            "Rank weights that turn a metric into an objective",
            "For abstain.training.RankWeightedLoss",
            "abstain.training:RANK_WEIGHTS",
            lambda w: (f"Metric: {w.metric}.", w.source),
            needs_torch=True,
        ),
    ),
}
