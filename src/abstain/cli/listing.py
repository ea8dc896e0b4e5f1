"""`abstain list`: what there is to ask for by name."""

import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.text import Text

from abstain._foundation.extras import has
from abstain._foundation.imports import later
from abstain.cli.console import console
from abstain.errors import MissingInputError

What = Literal[
    "metrics",
    "scores",
    "losses",
    "rules",
    "studies",
    "populations",
    "objectives",
    "rank-weights",
    "models",
    "datasets",
    "corruptions",
    "tasks",
    "protocols",
    "published",
]


@dataclass(frozen=True)
class Chapter:
    """One catalogue as it is printed."""

    title: str
    #: Where its names are asked for.
    use: str
    #: Where its entries are, or what returns them, below `abstain`; imported when asked for.
    catalogue: str
    #: From an entry to the sentences under its title.
    said: Callable[[Any], Iterable[str]]
    #: That it needs, or empty.
    extra: str = ""
    #: Entries that stand in no catalogue.
    beside: tuple[Any, ...] = ()
    #: Returns the end of `use`, where only the catalogue's own module knows it.
    ending: Callable[[], str] = str


def listing(
    what: Annotated[What | None, Parameter(help="one of them (default: what there is)")] = None,
    /,
) -> None:
    """List what there is to ask for by name."""
    out = console()
    width = min(out.width, 80)
    lines = _overview() if what is None else _chapters(what, width)
    for line in lines:
        # Wrapped already: rich would cut an address that is longer than the terminal.
        out.print(line, soft_wrap=True)


def _overview() -> Iterator[Text]:
    wide = max(map(len, CHAPTERS))
    for what, chapters in CHAPTERS.items():
        yield Text(f"{what:{wide}}  ", style="bold").append(chapters[0].title, style="not bold")
    yield Text("`abstain list metrics` prints the metrics, and so on.", style="dim")


def _chapters(what: What, width: int) -> Iterator[Text]:
    for chapter in CHAPTERS[what]:
        if chapter.extra and not has("torch"):
            msg = f"the {what} need torch; pip install 'abstain[{chapter.extra}]'"
            raise MissingInputError(msg)
        yield from _wrapped(f"{chapter.title}. {chapter.use}{chapter.ending()}.", width, "", "dim")
        found = resolve_name(f"abstain.{chapter.catalogue}")
        entries = found() if callable(found) else found
        for entry in (*entries.values(), *chapter.beside):
            yield Text("")
            yield from _heading(entry, width)
            for sentence in filter(None, chapter.said(entry)):
                yield from _wrapped(sentence, width, "    ", "")
        yield Text("")


def _heading(entry: Any, width: int) -> Iterator[Text]:
    """Yield the name of an entry in bold, and its title."""
    lines = _wrapped(f"{entry.name}  {entry.title}", width, "", "")
    for i, line in enumerate(lines):
        line.pad_left(4 if i else 0)
        if i == 0:
            line.stylize("bold", 0, len(entry.name))
        yield line


def _wrapped(sentence: str, width: int, indent: str, style: str) -> Iterator[Text]:
    """Wrap at blanks only: no address and no name is cut in two."""
    lines = textwrap.wrap(
        sentence,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return (Text(line, style=style) for line in lines)


def _needs(needs: Iterable[Any]) -> str:
    listed = ", ".join(sorted(need.value.removeprefix("needs ") for need in needs))
    return f"Needs {listed}." if listed else ""


def _named(title: str, names: Iterable[str]) -> str:
    listed = ", ".join(dict.fromkeys(names))
    return f"{title}: {listed}." if listed else ""


def _metric(metric: Any) -> tuple[str, ...]:
    best = "low" if metric.lower_is_better else "high"
    span = f"Best {best}, from {metric.low:g} to {metric.high:g}."
    return metric.convention, f"{span} {_needs(metric.needs)}", metric.source


def _benchmark_score(score: Any) -> tuple[str, ...]:
    fitted = f", fitted on {score.fitted_on}" if score.fitted_on else ""
    return f"Of a network trained by {score.objective}{fitted}.", score.source


def _rule(rule: Any) -> tuple[str, ...]:
    losses = f"Losses: {rule.loss}."
    return f"Guarantees: {rule.guarantee}. {losses}", _named("Options", rule.options), rule.source


@dataclass(frozen=True)
class _Logits:
    """The population that studies make, which has parameters in place of an entry."""

    name: str = "logits"
    title: str = "labeled class scores"
    meaning: str = "Gaussian classes, for studies over scores; in Python ab.simulate.logits."


def _model(model: Any) -> tuple[str, ...]:
    side = f"{model.side} x {model.side}" if model.side else f"from {model.least} px"
    return f"Pictures: {side}.", model.source


def _explained(entry: Any) -> tuple[str, ...]:
    return entry.meaning, getattr(entry, "source", "")


#: What is printed for each word, one or more catalogues.
CHAPTERS: dict[What, tuple[Chapter, ...]] = {
    "metrics": (
        Chapter(
            "Metrics of a confidence score",
            "Also with numbers of your own: ",
            "metrics:METRICS",
            _metric,
            ending=later("abstain.metrics.catalogue:with_numbers"),
        ),
    ),
    "scores": (
        Chapter(
            "Confidence scores",
            "With a temperature: msr@T=1.5. Your own confidence columns need no name here",
            "confidence:SCORES",
            lambda s: (_needs(s.needs), s.source),
        ),
        Chapter(
            "Scores that are fitted first",
            "From Python: ab.fit_score(NAME, predictions), ab.select_score(NAME, ...)",
            "confidence:FITTED",
            lambda k: (
                f"{_named('Options', (*k.required, *k.options))} {_needs(k.to_fit)}",
                k.source,
            ),
        ),
        Chapter(
            "Scores of the networks of a benchmark",
            "For `abstain benchmark run --methods`; in Python: abstain.benchmark.methods",
            "benchmark.methods:METHODS",
            _benchmark_score,
        ),
    ),
    "losses": (
        Chapter(
            "What counts as wrong", "For --loss", "predictions:LOSSES", lambda loss: (loss.source,)
        ),
    ),
    "rules": (
        Chapter(
            "Rules that choose a threshold",
            "For `abstain threshold --method` and ab.thresholds.fit",
            "thresholds:RULES",
            _rule,
        ),
    ),
    "studies": (
        Chapter(
            "Studies of the literature",
            "For `abstain study NAME`",
            "studies:STUDIES",
            lambda s: (s.question, s.source),
        ),
    ),
    "populations": (
        Chapter(
            "Simulated populations, of which the truth is known",
            "For `abstain study NAME --population` and ab.simulate.make",
            "simulate:POPULATIONS",
            _explained,
            beside=(_Logits(),),
        ),
    ),
    "objectives": (
        Chapter(
            "What networks minimize",
            "For abstain.training.make; the first three also for configurations of "
            "`abstain study finetune`",
            "training:OBJECTIVES",
            lambda k: (k.meaning, _named("Options", k.options), k.source),
            "torch",
        ),
    ),
    "rank-weights": (
        Chapter(
            "Weights by rank that make a metric an objective",
            "For abstain.training.RankWeightedLoss",
            "training:RANK_WEIGHTS",
            lambda w: (f"Metric: {w.metric}.", w.source),
            "torch",
        ),
    ),
    "models": (
        Chapter(
            "Networks",
            "For `abstain benchmark run --model` and `abstain study finetune --model`",
            "benchmark.models:MODELS",
            _model,
            "benchmark",
        ),
    ),
    "datasets": (
        Chapter(
            "Data sets",
            "For configurations of `abstain study finetune`; in Python: abstain.benchmark.data",
            "benchmark.data:DATASETS",
            _explained,
        ),
    ),
    "protocols": (
        Chapter(
            "Settings of published benchmarks",
            "For `abstain benchmark run --protocol`",
            "benchmark.specification:PROTOCOLS",
            lambda p: (p.meaning, _named("Tasks", p.tasks), p.source),
        ),
    ),
    "corruptions": (
        Chapter(
            "Corruptions of pictures, in five severities",
            "For `abstain benchmark run --corruptions`; in Python: "
            "abstain.benchmark.data.corruptions.corrupt",
            "benchmark.data.corruptions:CORRUPTIONS",
            _explained,
        ),
    ),
    "tasks": (
        Chapter(
            "Tasks of the benchmark",
            "For `abstain benchmark run TASK`; in Python: abstain.benchmark.tasks",
            "benchmark.tasks:TASKS",
            _explained,
        ),
    ),
    "published": (
        Chapter(
            "Tables of the literature, as facts",
            "For abstain.published.table(NAME)",
            "published:tables",
            lambda one: (f"Scale: {one.scale}.", *(d.text for d in one.doubts), one.source),
        ),
    ),
}
