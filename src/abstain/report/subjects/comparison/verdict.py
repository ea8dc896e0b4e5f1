"""Main results of a comparison in plain sentences."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from abstain.evaluation.comparison import Comparison, Estimate, NonInferiorityRow, pairs_with_best
from abstain.plots.formatting import (
    format_p_equation,
    metric_title,
)
from abstain.report.document import KeyNumber
from abstain.report.formatting import (
    format_number,
    join_quoted,
)
from abstain.report.subjects.comparison.metric_result import (
    MetricResult,
    main_result,
    metric_results,
)
from abstain.report.subjects.comparison.overview import Overview, quote

#: Maximum number of metrics with sentences.
_MAX_METRICS = 3

#: Maximum number of data sets with a conclusion for each of them.
_MAX_DATA_SETS = 3

#: Maximum number of methods whose number of data sets with a significant result is given.
_MAX_METHODS_WITH_COUNTS = 4

#: Maximum number of further methods whose number of best data sets is given.
_MAX_WINNERS = 3

#: Minimum Kendall's tau of two rankings that are called similar.
_MIN_TAU_SIMILAR = 0.8


def comparison_answer(comparison: Comparison) -> list[str]:
    """Return the main result in one or two sentences."""
    metric = comparison.metrics[0]
    results = list(metric_results(comparison, [metric]))
    overview = Overview(main_result(comparison))
    if comparison.reference or len(results) == 1:
        sentences = list(overview.answer())
        is_undefined = not results[0].best_methods and not comparison.reference
        if not sentences or is_undefined:
            sentences = [_no_best_sentence(results[0].title, results[0].estimates)]
        elif overview.result.data is None:
            first, *others = sentences
            blocks = f"{len(comparison.data)} {comparison.block_kind}"
            sentences = [f"Over {blocks}, {first}", *others]
    else:
        sentences = _several_data_sets_sentences(results)
    results_by_metric = [list(metric_results(comparison, [m])) for m in comparison.metrics]
    sentences += map(non_inferiority_sentence, results_by_metric[:_MAX_METRICS])
    sentences.append(common_margin_caution(comparison))
    return [sentence for sentence in sentences if sentence]


def key_numbers(comparison: Comparison) -> Iterator[KeyNumber]:
    """Yield the key numbers for the first metric."""
    if comparison.reference or len(comparison.data) == 1:
        yield from Overview(main_result(comparison)).key_numbers()
        return
    results = list(metric_results(comparison, comparison.metrics[:1]))
    n_best = Counter(method for result in results for method in result.best_methods)
    if not n_best:
        return
    leader, n_data_sets = n_best.most_common(1)[0]
    of_all = f"of {len(results)} data sets"
    yield KeyNumber(f"Best {results[0].title}", quote(leader), f"on {n_data_sets} {of_all}")
    n_significant = sum(r.is_best_significant and r.leader == leader for r in results)
    yield KeyNumber("Significantly better than all others", str(n_significant), of_all)
    across = comparison.mean_ranks_of(results[0].metric)
    if across is None:
        return
    mean_rank = dict(zip(across.methods, across.mean_ranks, strict=True))[leader]
    yield KeyNumber(
        f"Mean rank of {quote(leader)}", f"{mean_rank:.1f}", f"of {len(across.methods)}"
    )
    if not math.isnan(across.p_value):
        p_value = format_p_equation(across.p_value)
        yield KeyNumber("Friedman test", p_value, "hypothesis: equal mean ranks")


# ------------------------------------------------------------------------------ one data set
def _no_best_sentence(title: str, estimates: Sequence[Estimate]) -> str:
    """Return a text with the reason why no method is best."""
    methods = [e.method for e in estimates if not math.isnan(e.value)]
    if not methods:
        return f"{title} is undefined for all methods."
    if len(set(methods)) == 1:
        return f"{title} is defined only for {join_quoted(methods[:1])}."
    return f"All methods have the same {title}."


# -------------------------------------------------------------------------- several data sets
def _several_data_sets_sentences(results: Sequence[MetricResult]) -> list[str]:
    """Return a sentence for each of few data sets, or sentences on the leader and the tests."""
    if len(results) <= _MAX_DATA_SETS and all(result.best_methods for result in results):
        answers = [" ".join(Overview(result).answer()) for result in results]
        if all(answers):
            names = [result.data_name for result in results]
            return [f"{name}: {answer}" for name, answer in zip(names, answers, strict=True)]
    n_best = Counter(method for result in results for method in result.best_methods)
    title = results[0].title
    estimates = [estimate for result in results for estimate in result.estimates]
    if not n_best:
        return [_no_best_sentence(title, estimates)]
    extreme = "lowest" if estimates[0].lower_is_better else "highest"
    best_first = n_best.most_common()
    leader, n_data_sets = best_first[0]
    counts = [f"{n_data_sets} of {len(results)} data sets"]
    for method, count in best_first[1 : 1 + _MAX_WINNERS]:
        counts.append(f"“{method}” on {count}")
    n_unnamed = len(best_first) - 1 - _MAX_WINNERS
    if n_unnamed > 0:
        counts.append(f"{n_unnamed} more methods on others")
    n_without_best = sum(not result.best_methods for result in results)
    if n_without_best:
        counts.append(f"no method on {n_without_best}")
    lead = f"“{leader}” has the {extreme} {title} on {', '.join(counts)}."
    return [lead, _significance_sentence(results, leader)]


def _significance_sentence(results: Sequence[MetricResult], leader: str) -> str:
    """Return a clause with the number of data sets on which a method is significantly better."""
    on_all: list[str] = []
    on_some: list[str] = []
    on_none: list[str] = []
    pairs_by_result = [pairs_with_best(result.pairs, leader) for result in results]
    for competitor in results[0].comparison.methods:
        pairs = [pair_by_method.get(competitor) for pair_by_method in pairs_by_result]
        tested = [pair for pair in pairs if pair is not None and not math.isnan(pair.adjusted)]
        n_significant = sum(pair.better == leader for pair in tested)
        if tested and n_significant == len(results):
            on_all.append(competitor)
        elif n_significant:
            on_some.append(f"“{competitor}” on {n_significant}")
        elif tested:
            on_none.append(competitor)
    clauses = [f"{join_quoted(on_all)} on all data sets"] if on_all else []
    clauses += on_some[:_MAX_METHODS_WITH_COUNTS]
    if len(on_some) > _MAX_METHODS_WITH_COUNTS:
        clauses.append(f"{len(on_some) - _MAX_METHODS_WITH_COUNTS} more methods on some data sets")
    if on_none:
        clauses.append(f"{join_quoted(on_none)} on no data set")
    if not clauses:
        return ""
    return f"“{leader}” is significantly better than {', than '.join(clauses)}."


# -------------------------------------------------------------------------------- two metrics
def agreement_sentence(comparison: Comparison, metric: str) -> str:
    """Return a sentence on the similarity of the rankings by two metrics."""
    reference = comparison.metrics[0]
    data = None if len(comparison.data) > 1 else comparison.data[0]
    taus = []
    for agreement in comparison.agreements:
        has_both_metrics = {agreement.first, agreement.second} == {reference, metric}
        if has_both_metrics and agreement.data == data and not math.isnan(agreement.tau):
            taus.append(agreement.tau)
    if not taus:
        return ""
    tau = taus[0]
    if tau > 1 - 1e-9:
        manner = "in the same order"
    elif tau >= _MIN_TAU_SIMILAR:
        manner = "similarly"
    else:
        manner = "differently"
    names = f"{metric_title(reference)} and {metric_title(metric)}"
    tau_text = f"{tau:.2f}".replace("-", "\u2212")
    return f"{names} rank the methods {manner} (Kendall's tau {tau_text})."


# ------------------------------------------------------------------------------ non-inferiority
def non_inferiority_claim(row: NonInferiorityRow, *, has_quotes: bool = True) -> str:
    """Return the tested claim: the method is worse than the reference by at most the margin."""
    reference = f"“{row.reference}”" if has_quotes else row.reference
    return f"at most {row.margin:g} worse than {reference}"


def non_inferiority_line(row: NonInferiorityRow, p_name: str = "adjusted p") -> str:
    """Describe the difference, the bound, the p-value and the conclusion for one method.

    Examples
    --------
    >>> row = NonInferiorityRow(
    ...     "augrc", (), "pe", "msr", 0.002, 0.0012, 0.0031, 0.2, 0.4, non_inferior=False
    ... )
    >>> print(non_inferiority_line(row))
    pe: worse than msr by 0.001200, at most 0.003100 (margin 0.002, adjusted p = 0.4): not shown to
    be within the margin
    """
    if math.isnan(row.worse_by):
        return f"{row.method}: undefined (margin {row.margin:g})"
    comparative = "better" if row.worse_by < 0 else "worse"
    p_equation = format_p_equation(row.adjusted, p_name)
    conclusion = "within the margin" if row.non_inferior else "not shown to be within the margin"
    difference = format_number(abs(row.worse_by))
    return (
        f"{row.method}: {comparative} than {row.reference} by {difference}, {_bound_text(row)} "
        f"(margin {row.margin:g}, {p_equation}): {conclusion}"
    )


def _bound_text(row: NonInferiorityRow) -> str:
    if math.isnan(row.bound):
        return "no bound"
    if row.bound < 0:
        return f"at least {format_number(-row.bound)}"
    return f"at most {format_number(row.bound)}{' worse' if row.worse_by < 0 else ''}"


def non_inferiority_lines(results: Sequence[MetricResult], *, is_short: bool) -> list[str]:
    """Return a line for each non-inferiority test, or for each result if `is_short` is true."""
    lines = []
    for result in results:
        rows = result.non_inferiority_rows
        if not rows:
            continue
        claim = f"{result.label}, {non_inferiority_claim(rows[0], has_quotes=False)}"
        if not is_short:
            p_name = result.comparison.p_value_label
            lines += [f"{claim}:", *(f"  {non_inferiority_line(row, p_name)}" for row in rows)]
            continue
        shown = [row.method for row in rows if row.non_inferior]
        not_shown = [row.method for row in rows if not row.non_inferior]
        conclusions = [f"shown for {', '.join(shown)}"] if shown else []
        if not_shown:
            conclusions.append(f"not shown for {', '.join(not_shown)}")
        lines.append(f"{claim}: {'; '.join(conclusions)}.")
    return lines


def non_inferiority_sentence(results: Sequence[MetricResult]) -> str:
    """Return the conclusion of the non-inferiority tests of one metric, if there are tests."""
    rows = [row for result in results for row in result.non_inferiority_rows]
    if not rows:
        return ""
    n_data_sets = len(results)
    n_shown = Counter({row.method: 0 for row in rows})
    n_shown.update(row.method for row in rows if row.non_inferior)
    on_all = [method for method, count in n_shown.items() if count == n_data_sets]
    on_none = [method for method, count in n_shown.items() if count == 0]
    on_some = []
    for method, count in n_shown.items():
        if 0 < count < n_data_sets:
            on_some.append(f"for “{method}” on {count} of {n_data_sets}")
    all_suffix = " on all data sets" if n_data_sets > 1 else ""
    none_suffix = " on any" if n_data_sets > 1 else ""
    clauses = [f"for {join_quoted(on_all)}{all_suffix}"] if on_all else []
    clauses += on_some[:_MAX_METHODS_WITH_COUNTS]
    if len(on_some) > _MAX_METHODS_WITH_COUNTS:
        clauses.append(f"for {len(on_some) - _MAX_METHODS_WITH_COUNTS} more on some")
    conclusions = [f"shown {', '.join(clauses)}"] if clauses else []
    if on_none:
        conclusions.append(f"not shown for {join_quoted(on_none)}{none_suffix}")
    return f"{results[0].title} {non_inferiority_claim(rows[0])}: {'; '.join(conclusions)}."


def common_margin_caution(comparison: Comparison) -> str:
    """Return a caution if the tests of several metrics use the same margin."""
    if len({row.metric for row in comparison.non_inferiority}) < 2:
        return ""
    margin = f"{comparison.non_inferiority[0].margin:g}"
    return f"The same margin, {margin}, is used for all metrics, whatever their scale."
