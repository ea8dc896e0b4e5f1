"""Convert the outputs of networks and ensembles to `Predictions`."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from scipy.special import expit

from abstain._foundation import checks
from abstain.errors import InputError
from abstain.predictions import Predictions
from abstain.predictions.softmax import log_mean_probabilities, log_softmax, row_blocks
from abstain.typing import AnyArray, Array, FloatArray

#: Label of an image of an unknown class.
UNKNOWN_LABEL: Final = -1

#: Columns of `Predictions.confidence`, with the names of external confidences in FD-Shifts.
#: "learned" is the confidence that the objective learned, as log-odds. "mcd_learned" is the mean of
#: its probability over the passes with dropout, as log-odds. "learned_waic" is this mean minus the
#: standard deviation over the passes, as a probability.
EXTERNAL_COLUMNS: Final = {"learned": "ext", "mcd_learned": "ext_mcd", "learned_waic": "ext_waic"}


def network_outputs(
    logits: AnyArray,
    labels: AnyArray,
    source_indices: AnyArray,
    *,
    features: AnyArray | None = None,
    samples: AnyArray | None = None,
    confidence: AnyArray | None = None,
    sample_confidence: AnyArray | None = None,
) -> Predictions:
    """Return the outputs of a network as `Predictions`.

    Parameters
    ----------
    logits : array of shape (n, K)
        Logits of the classes, without the additional logit for abstention.
    labels : array of shape (n,)
        True classes; -1 for an image of an unknown class.
    source_indices : array of shape (n,)
        Index of each image in its source. All copies of an image have the same index.
    features : array of shape (n, d), optional
        Inputs of the last layer, computed without dropout.
    samples : array of shape (n, S, K), optional
        Class logits of S >= 2 passes with dropout.
    confidence : array of shape (n,), optional
        Confidence that the objective learned, as log-odds.
    sample_confidence : array of shape (n, S), optional
        Learned confidence of each pass with dropout, as log-odds.

    Returns
    -------
    abstain.Predictions
        `ids` are the source indices. `confidence` has the columns "learned", "mcd_learned" and
        "learned_waic" if the network has a learned confidence.

    Raises
    ------
    ShapeError, DomainError
        See `abstain.Predictions`.

    Examples
    --------
    >>> from abstain_bench.runs.outputs import network_outputs
    >>> outputs = network_outputs([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]], [0, 0, -1], [4, 5, 9])
    >>> outputs.correct.tolist(), outputs.subset([2]).ids.tolist()
    ([True, False, False], [9])
    """
    learned: dict[str, FloatArray] = {}
    if confidence is not None:
        learned["learned"] = np.asarray(confidence, dtype=np.float64)
    if sample_confidence is not None:
        log_odds = _finite(sample_confidence, "sample_confidence").astype(np.float64)
        # The softmax of (log-odds, 0) is the probability and its complement.
        two_class_logits = np.stack([log_odds, np.zeros_like(log_odds)], axis=2)
        log_mean = log_mean_probabilities(log_softmax(two_class_logits))
        learned["mcd_learned"] = log_mean[:, 0] - log_mean[:, 1]
        probability = expit(log_odds)
        learned["learned_waic"] = probability.mean(axis=1) - probability.std(axis=1)
    return Predictions(
        logits=_finite(logits, "logits"),
        labels=labels,
        ids=source_indices,
        features=None if features is None else _finite(features, "features"),
        logit_samples=None if samples is None else _finite(samples, "samples"),
        confidence=learned or None,
        unknown_label=UNKNOWN_LABEL,
    )


def ensemble_outputs(members: Sequence[Predictions]) -> Predictions:
    """Average the class probabilities of the networks of a deep ensemble.

    Parameters
    ----------
    members : sequence of abstain.Predictions
        Outputs of at least two networks for the same images in the same order.

    Returns
    -------
    abstain.Predictions
        `logits` contains the logarithms of the averaged probabilities. `logit_samples` contains the
        logits of the members. `features` is None, because the ensemble has no single last layer.

    Raises
    ------
    InputError
        If `members` has fewer than two entries, or if the members have different images or classes.

    Notes
    -----
    The average is computed from log-probabilities in float64 to prevent underflow.

    References
    ----------
    .. [1] Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation
       using deep ensembles, https://arxiv.org/abs/1612.01474

    Examples
    --------
    >>> from abstain_bench.runs.outputs import ensemble_outputs, network_outputs
    >>> members = [network_outputs([logits], [0], [0]) for logits in ([0.0, 0.0], [50.0, 0.0])]
    >>> outputs = ensemble_outputs(members)
    >>> outputs.logits.round(4).tolist(), outputs.logit_samples.shape
    ([[-0.2877, -1.3863]], (1, 2, 2))
    """
    members = list(members)
    _check_members(members)
    reference = members[0]
    samples = np.stack([member.logits for member in members], axis=1)
    logits = np.empty((reference.n, reference.n_classes), dtype=reference.logits.dtype)
    for rows in row_blocks(reference.n, samples[0].size):
        logits[rows] = log_mean_probabilities(log_softmax(samples[rows].astype(np.float64)))
    return network_outputs(logits, reference.labels, reference.ids, samples=samples)


def _check_members(members: Sequence[Predictions]) -> None:
    """Raise an error if there are fewer than two members, or if their images differ."""
    if len(members) < 2:
        raise InputError(f"`members` must hold at least two outputs; got {len(members)}")
    reference = members[0]
    for number, member in enumerate(members[1:], start=2):
        pairs: dict[str, tuple[Any, Any]] = {
            "shape of the logits": (member.logits.shape, reference.logits.shape),
            "`labels`": (member.labels, reference.labels),
            "`ids`": (member.ids, reference.ids),
        }
        for description, (member_array, expected_array) in pairs.items():
            if not np.array_equal(member_array, expected_array):
                raise InputError(
                    f"members of an ensemble must have outputs for the same images; the "
                    f"{description} of member {number} and of member 1 differ"
                )


def check_n_passes(samples: Any) -> None:
    """Raise an error unless the number of dropout passes is 0 or at least 2."""
    is_integer = isinstance(samples, int | np.integer) and not isinstance(samples, bool)
    if not is_integer or samples < 0 or samples == 1:
        raise InputError(
            f"`samples` must be 0 (no passes with dropout) or at least 2; got {samples!r}"
        )


def _finite(array: AnyArray, name: str) -> Array:
    """Check that all values are finite, and convert float16 to float32."""
    finite = checks.finite(np.asarray(array), name, hint="Did the training diverge?")
    return finite.astype(np.float32) if finite.dtype == np.float16 else finite
