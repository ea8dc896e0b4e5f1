"""What the rankings say, in sentences that follow from the numbers."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from abstain_bench.studies._sentences import counted, listed
from abstain_bench.studies.rankings.changes import ADJUSTED, AFTER, BEFORE, PAIRED, TWO, UNADJUSTED
from abstain_bench.studies.rankings.paper import IID, SAID_TO_CHANGE

Row = Mapping[str, Any]


def verdict(tables: Mapping[str, Sequence[Row]], resamples: int) -> Iterator[str]:
    """Say what changes, of what one may be sure, and why."""
    last = tables["changes"][-1]["selection"]
    yield _changes([row for row in tables["changes"] if row["selection"] == last])
    yield from _swaps([row for row in tables["changes"] if row["selection"] == last])
    if tables["tests"]:
        yield from _tests([row for row in tables["tests"] if row["selection"] == last], resamples)
    yield from _neighbors([r for r in tables.get("neighbors", ()) if r["selection"] == last])
    if tables.get("disagreements"):
        yield _violations(tables["disagreements"])
        yield from _by_definition(tables["disagreements"])
    if "settings" in tables:
        yield _settings(tables)


def of_selections(rows: Sequence[Row]) -> str:
    """Say what changes by how settings are chosen."""
    own: dict[str, list[Row]] = {}
    for row in rows:
        own.setdefault(row["selection"], []).append(row)
    told = (
        f"with settings chosen {how} {sum(row['changed'] for row in of)} of "
        f"{sum(row['methods'] for row in of)} ranks and {sum(row['top_3_changes'] for row in of)} "
        f"times the first three"
        for how, of in own.items()
    )
    return (
        f"Over {counted(len(rows) // len(own), 'study', 'studies')} there change {'; '.join(told)}."
    )


def _changes(rows: Sequence[Row]) -> str:
    total = sum(row["methods"] for row in rows)
    changed = sum(row["changed"] for row in rows)
    top, best = (sum(row[name] for row in rows) for name in ("top_3_changes", "best_changes"))
    taus = [row["tau"] for row in rows]
    return (
        f"From {BEFORE.title} to {AFTER.title} {changed} of {total} ranks change, by up to "
        f"{max(row['largest_change'] for row in rows)}. The best method changes in {best} and the "
        f"first three in {top} of {counted(len(rows), 'study', 'studies')}; Kendall's tau is "
        f"{median(taus):.2f} in the median and {min(taus):.2f} at least."
    )


def _swaps(rows: Sequence[Row]) -> Iterator[str]:
    if any("decided" not in row for row in rows):
        return
    swaps, decided = (sum(row[name] for row in rows) for name in ("swaps", "decided"))
    if swaps:
        yield (
            f"Of {counted(swaps, 'pair that changes', 'pairs that change')} places, the paired "
            f"test is sure of either order in {decided}: "
            + (
                "only there do the metrics contradict each other beyond chance."
                if decided
                else "all of these changes may be chance in the test samples."
            )
        )


def _tests(rows: Sequence[Row], resamples: int) -> Iterator[str]:
    def summed(test: str, column: str) -> int:
        return sum(row[column] for row in rows if row["test"] == test)

    pairs = summed(PAIRED, "pairs")
    found = {test: summed(test, "told_apart") for test in (UNADJUSTED, ADJUSTED, PAIRED)}
    yield (
        f"The literature's map, Wilcoxon's test over {resamples} bootstrap samples, tells "
        f"{found[UNADJUSTED]} of {pairs} pairs apart ({found[ADJUSTED]} with Holm's adjustment); "
        f"the paired test with Holm's adjustment tells {found[PAIRED]} apart. The first treats "
        "resamples of one test set as independent: its p-values shrink with their number, whatever "
        "the data say, and an adjustment does not mend that."
    )
    if all("wrongly" in row for row in rows):
        wrong = {test: summed(test, "wrongly") for test in found}
        yield (
            f"Here the truth is known: the literature's test is wrong in {wrong[UNADJUSTED]} of "
            f"{found[UNADJUSTED]} pairs that it tells apart ({wrong[ADJUSTED]} of "
            f"{found[ADJUSTED]} with Holm's adjustment), the paired test in {wrong[PAIRED]} of "
            f"{found[PAIRED]}. It pays with pairs that it leaves open: "
            f"{summed(PAIRED, 'really_apart')} truly differ."
        )


def _violations(rows: Sequence[Row]) -> str:
    broken = [row for row in rows if row["violates_R2"]]
    said = (
        f"The metrics order {counted(len(rows), 'pair')} of methods of the same networks "
        f"differently. In {len(broken)} of them {BEFORE.title} prefers the method that is nowhere "
        "better by accuracy and AUROC and somewhere worse, which breaks R2"
    )
    if not broken:
        return f"{said}."
    few = [row["responsible"] for row in broken]
    share = median(row["responsible"] / row["failures"] for row in broken)
    return (
        f"{said}. {counted(median(few), 'failure')} in the median, "
        f"{100 * share:.1f} % of those there are, {'is' if median(few) == 1 else 'are'} enough to "
        "turn it."
    )


def _by_definition(rows: Sequence[Row]) -> Iterator[str]:
    """Explain the violations of R2 that follow from equal failures, and are no finding."""
    same = [row for row in rows if row["same_failures"]]
    if same:
        yield (
            f"{len(same)} of these {counted(len(rows), 'pair')} have the same failures and "
            f"so the same accuracy. There {AFTER.title} orders methods as the failure AUROC does "
            f"(Traub et al. 2024, eq. 7), so that every disagreement with {BEFORE.title} violates "
            "R2: the number of violations among them is no finding, only the number of "
            "disagreements is."
        )


def _neighbors(rows: Sequence[Row]) -> Iterator[str]:
    """Count the neighbors in rank of which the literature's test prefers the lower one."""
    if rows:
        contradicting = sum(row["contradicts_rank"] for row in rows)
        yield (
            f"In {contradicting} of {counted(len(rows), 'pair')} of methods with adjacent "
            "mean ranks, the method with the worse mean rank is significantly better by the "
            "literature's test on the same resamples, as the last paragraph of section 4.1 of "
            "Traub et al. (2024) describes."
        )


def of_printed_top(rows: Sequence[Row], selection: str) -> str:
    """Compare how often the first three change in print with what the paper says of resamples."""
    own = [r for r in rows if r["selection"] == selection and r["study"].endswith(IID)]
    moved = [row["study"].removesuffix(IID) for row in own if row["top_3_changes"]]
    return (
        f"With settings chosen {selection}, the first three methods change on {len(moved)} of "
        f"{len(own)} i.i.d. test sets ({', '.join(moved)}) by these ranks. Section 4.1 says "
        f"{SAID_TO_CHANGE} of {len(own)}: there methods are ranked by their mean rank over "
        "bootstrap resamples (figure 3), here by the test sets as they are (table 4)."
    )


def _settings(tables: Mapping[str, Sequence[Row]]) -> str:
    chosen = tables["settings"]
    if not chosen:
        return "Both metrics choose the same settings on validation data for every method."
    by = {
        selection: sum(r["changed"] for r in tables["changes"] if r["selection"] == selection)
        for selection in dict.fromkeys(row["selection"] for row in tables["changes"])
    }
    told = " and ".join(f"{count} with settings chosen {how}" for how, count in by.items())
    named = listed([row["method"] for row in chosen], 5)
    return (
        f"{BEFORE.title} and {AFTER.title} choose other settings for "
        f"{counted(len(chosen), 'method')} ({named}). Ranks that change: {told}."
    )


def true_ranks(rows: Sequence[Row]) -> Iterator[str]:
    """Say how near the ranks come to the true ones, where these are known."""
    if not rows or f"{TWO[0]}_true_rank" not in rows[0]:
        return
    off = {
        metric.title: sum(
            abs(row[f"{metric.name}_rank"] - row[f"{metric.name}_true_rank"]) for row in rows
        )
        / len(rows)
        for metric in (BEFORE, AFTER)
    }
    true = sum(row[f"{TWO[0]}_true_rank"] != row[f"{TWO[1]}_true_rank"] for row in rows)
    told = " and ".join(f"{value:.1f} by {name}" for name, value in off.items())
    yield (
        f"{true} of {len(rows)} true ranks differ between the metrics, so that the change is no "
        f"chance of the samples. A rank found here is off from the true one by {told} on average."
    )
