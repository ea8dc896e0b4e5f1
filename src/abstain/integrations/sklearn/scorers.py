"""Scorers for `cross_validate`, `GridSearchCV` and the like.

A scorer is called with a fitted classifier, samples and labels; greater is better, so metrics
of which less is better come out negative.
"""

import warnings
from typing import Any, Literal, get_args

from abstain._foundation import checks
from abstain._foundation.scored import Scored
from abstain.errors import InputError, UndefinedMetricWarning
from abstain.integrations.sklearn._confidence import ScoreLike, Scoring
from abstain.integrations.sklearn._judged import holds_selective, innermost, judged, mistakes
from abstain.integrations.sklearn._requests import TakesWeights
from abstain.metrics import metric_named, working_point
from abstain.predictions import CostMatrix
from abstain.typing import AnyArray

_AtRule = Literal["coverage", "selective_risk", "generalized_risk"]


class SelectiveScorer(TakesWeights):
    """A metric of the catalogue as a scikit-learn scorer; `make_selective_scorer` makes it.

    Parameters
    ----------
    metric : str
        Its name.
    score : str, fitted score, callable or None
        The confidence; None is the classifier's own, "msr" where it has none.
    response_method : str
        What a named score is computed from.
    loss : str, CostMatrix or None
        What counts as a mistake, and how much.
    """

    def __init__(
        self,
        metric: str,
        score: ScoreLike | None = None,
        response_method: str = "auto",
        loss: "str | CostMatrix | None" = None,
    ) -> None:
        super().__init__()
        # The name and not the entry, which cannot be sent to another process.
        self.metric = metric_named(metric).name
        self.score, self.loss = score, loss
        self.response_method = response_method
        self._scoring(None)  # refuses what is no score

    def __repr__(self) -> str:
        """Say which metric of which confidence."""
        score = "" if self.score is None else f", score={self.score!r}"
        return f"make_selective_scorer({self.metric!r}{score})"

    def __call__(
        self, estimator: Any, X: Any, y: Any, *, sample_weight: AnyArray | None = None
    ) -> float:
        """Return the metric on labelled samples, negated where less is better.

        Parameters
        ----------
        estimator : classifier
            Fitted. Of a `SelectiveClassifier`, also one in a pipeline or a search, the
            predictions of all samples are judged, whatever its rule accepts.
        X : array-like or sparse matrix of shape (n, d)
            Samples.
        y : array-like of shape (n,)
            Classes. A class that the classifier does not know is never predicted right.
        sample_weight : array-like of shape (n,), optional
            Frequency weights.

        Returns
        -------
        float
            Greater is better; NaN with a warning where the metric is undefined.
        """
        own = None
        if holds_selective(estimator):
            selective, X = innermost(estimator, X)
            own, estimator = selective.scoring, selective.estimator_
        scoring = self._scoring(own)
        s = judged(estimator, X, y, scoring, loss=self.loss, sample_weight=sample_weight)
        return self._value(s)

    def _scoring(self, own: Scoring | None) -> Scoring:
        if self.score is not None:
            return Scoring(self.score, self.response_method)
        return own or Scoring("msr", self.response_method)

    def _value(self, s: Scored) -> float:
        metric = metric_named(self.metric)
        missing = metric.missing(s)
        if missing:
            msg = f"the metric {metric.name!r} does not apply here: it {missing}"
            raise InputError(msg)
        measured = metric.compute(s)
        if measured.reason:
            msg = f"{metric.name} is undefined here: {measured.reason}"
            warnings.warn(msg, UndefinedMetricWarning, stacklevel=3)
        return -float(measured.value) if metric.lower_is_better else float(measured.value)


class RuleScorer(TakesWeights):
    """What a `SelectiveClassifier` achieves at its own decision rule, as a scikit-learn scorer.

    Parameters
    ----------
    quantity : {"coverage", "selective_risk", "generalized_risk"}
        What is returned; risks are negated, so that greater is better.

    Raises
    ------
    InputError
        No such quantity.
    """

    def __init__(self, quantity: _AtRule) -> None:
        super().__init__()
        checks.one_of(quantity, "quantity", get_args(_AtRule))
        self.quantity = quantity

    def __repr__(self) -> str:
        """Say what is returned."""
        return f"{self.quantity}_scorer"

    def __call__(
        self, estimator: Any, X: Any, y: Any, *, sample_weight: AnyArray | None = None
    ) -> float:
        """Return what happens at the rule on labelled samples, risks negated.

        Parameters
        ----------
        estimator : SelectiveClassifier
            Fitted; also one in a pipeline or a search.
        X : array-like or sparse matrix of shape (n, d)
            Samples.
        y : array-like of shape (n,)
            Classes.
        sample_weight : array-like of shape (n,), optional
            Frequency weights.

        Returns
        -------
        float
            Greater is better; NaN with a warning for the selective risk of nothing.
        """
        if not holds_selective(estimator):
            msg = (
                f"{self!r} needs a SelectiveClassifier, whose rule says what is accepted; got "
                f"{type(estimator).__name__}. For any classifier at a fixed coverage use "
                "make_selective_scorer('selective_risk@80cov')."
            )
            raise InputError(msg)
        selective, X = innermost(estimator, X)
        wrong, accepted = mistakes(selective, X, y)
        point = working_point(accepted.astype(float), wrong, threshold=1, weight=sample_weight)
        if self.quantity in point.reasons:
            msg = f"{self.quantity} is undefined here: {point.reasons[self.quantity]}"
            warnings.warn(msg, UndefinedMetricWarning, stacklevel=2)
        value = float(getattr(point, self.quantity))
        return value if self.quantity == "coverage" else -value


def make_selective_scorer(
    metric: str,
    *,
    score: ScoreLike | None = None,
    response_method: str = "auto",
    loss: "str | CostMatrix | None" = None,
) -> SelectiveScorer:
    """Make a scikit-learn scorer of any metric in the catalogue.

    Answers: how well does a classifier know where it is wrong, on each fold?

    Parameters
    ----------
    metric : str
        A name in `abstain.metrics.METRICS`, or one with a number of your own such as
        "coverage@2risk".
    score : str, fitted score or callable, optional
        The confidence, as in `SelectiveClassifier`. By default that of the classifier where it is
        a `SelectiveClassifier`, else "msr".
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        What a named score is computed from.
    loss : str or CostMatrix, optional
        A name in `abstain.predictions.LOSSES` or costs; by default 0/1.

    Returns
    -------
    SelectiveScorer
        Called with (estimator, X, y); greater is better, so a metric of which less is better
        comes out negative.

    Raises
    ------
    UnknownNameError
        If there is no such metric or score.
    InputError
        If `score` is no score.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = make_classification(300, flip_y=0.2, random_state=0)
    >>> scorer = make_selective_scorer("failure_auroc", score="margin")
    >>> scores = cross_val_score(LogisticRegression(), X, y, scoring=scorer, cv=3)
    >>> bool((scores > 0.5).all())
    True
    """
    return SelectiveScorer(metric, score, response_method, loss)


#: Minus the AUGRC of the classifier's confidence.
augrc_scorer = make_selective_scorer("augrc")
#: Minus the AURC.
aurc_scorer = make_selective_scorer("aurc")
#: Minus the excess AURC.
e_aurc_scorer = make_selective_scorer("e_aurc")
#: AUROC of telling mistakes from right predictions.
failure_auroc_scorer = make_selective_scorer("failure_auroc")
#: Share of the samples that the rule of a `SelectiveClassifier` accepts.
coverage_scorer = RuleScorer("coverage")
#: Minus the share of mistakes among the samples it accepts.
selective_risk_scorer = RuleScorer("selective_risk")
#: Minus the share of all samples that it accepts and that are mistakes.
generalized_risk_scorer = RuleScorer("generalized_risk")
