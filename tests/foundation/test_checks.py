"""Bad values: each rule has a message that names rule, argument, place and value."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import abstain as ab
from abstain.errors import DomainError, InputError, ShapeError

OK = [0.9, 0.5, 0.1]
NAN, INF = float("nan"), float("inf")

RULES: list[tuple[list[Any], dict[str, Any], type[Exception], str]] = [
    (
        [[0.9, NAN, 0.1], [0, 1, 0]],
        {},
        DomainError,
        "`confidence` must be finite; got nan at index 1",
    ),
    (
        [[0.9, 0.5, -INF], [0, 1, 0]],
        {},
        DomainError,
        "`confidence` must be finite; got -inf at index 2",
    ),
    ([OK, [0, NAN, NAN]], {}, DomainError, r"`loss` must be finite; got nan at index 1 \(2 such"),
    ([OK, [0, INF, 0]], {}, DomainError, "`loss` must be finite; got inf at index 1"),
    (
        [OK, [0, -1, 0]],
        {},
        DomainError,
        "`loss` must not be negative; got -1 at index 1.*not an accuracy",
    ),
    (
        [OK, [0, 1, 0]],
        {"weight": [1, -2, 1]},
        DomainError,
        "`weight` must not be negative; got -2 at index 1",
    ),
    (
        [OK, [0, 1, 0]],
        {"weight": [1, NAN, 1]},
        DomainError,
        "`weight` must be finite; got nan at index 1",
    ),
    ([OK, [0, 1, 0]], {"weight": [0, 0, 0]}, DomainError, "`weight` must not be zero everywhere"),
    (
        [OK, [0, 1]],
        {},
        ShapeError,
        "`loss` must have one entry for each of the 3 entries of `confidence`; got 2",
    ),
    (
        [OK, [0, 1, 0]],
        {"weight": [1, 1]},
        ShapeError,
        "`weight` must have one entry for each of the 3",
    ),
    ([[], []], {}, ShapeError, "`confidence` is empty; at least one sample is needed"),
    (
        [[OK], [0, 1, 0]],
        {},
        ShapeError,
        r"`confidence` must have one axis \(n,\); got shape \(1, 3\)",
    ),
    ([0.5, [0]], {}, ShapeError, r"`confidence` must have one axis \(n,\); got shape \(\)"),
    (
        [["high", "low", "low"], [0, 1, 0]],
        {},
        DomainError,
        "`confidence` must hold numbers; got .*'high'",
    ),
    ([[1 + 1j, 0, 0], [0, 1, 0]], {}, DomainError, "`confidence` must hold numbers"),
    ([[[1], [1, 2], [1]], [0, 1, 0]], {}, InputError, "`confidence` must be an array; got list"),
    (
        [np.ma.array(OK, mask=[0, 1, 0]), [0, 1, 0]],
        {},
        InputError,
        "`confidence` is a masked array",
    ),
]
#: Functions that share the edge; the rules hold for all of them.
EDGES = [
    ab.augrc,
    ab.aurc,
    ab.e_aurc,
    ab.excess_augrc,
    ab.augrc_terms,
    ab.normalized_aurc,
    ab.achievable_aurc,
    ab.prediction_rejection_ratio,
    ab.area_under_accuracy_rejection,
    ab.partial_aurc,
    ab.partial_augrc,
    ab.risk_coverage_areas,
    ab.risk_coverage_curve,
    ab.generalized_risk_coverage_curve,
    ab.achievable_curve,
    ab.failure_auroc,
    ab.f1_auc,
    ab.sample_contributions,
    ab.tie_bounds,
]


@pytest.mark.parametrize("function", EDGES, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("data", "options", "error", "message"), RULES, ids=[r[3][:48] for r in RULES]
)
def test_bad_values(
    function: Callable[..., Any],
    data: list[Any],
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        function(*data, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ab.aurc(OK, [0, 1, 0], estimator="trapez"),
            "`estimator` must be one of 'trapezoid'",
        ),
        (lambda: ab.partial_aurc(OK, [0, 1, 0], low=0.5, high=0.5), "`low` must be below `high`"),
        (
            lambda: ab.partial_augrc(OK, [0, 1, 0], high=1.2),
            r"`high` must lie in \[0, 1\]; got 1.2",
        ),
        (lambda: ab.partial_augrc(OK, [0, 1, 0], low="a"), "`low` must be a number; got 'a'"),
        (
            lambda: ab.e_aurc(OK, [0, 0.5, 0], optimum="analytic"),
            "`loss` must be 0 or 1 for the analytic",
        ),
        (
            lambda: ab.area_under_accuracy_rejection(OK, [0, 2, 0]),
            r"`loss` must lie in \[0, 1\]; got 2",
        ),
        (
            lambda: ab.balanced_aurc(OK, [0, 1, 0], ["a"]),
            "`labels` must have one entry for each of the 3",
        ),
        (
            lambda: ab.group_contributions(OK, [0, 1, 0], ["a"]),
            "`group` must have one entry for each",
        ),
        (lambda: ab.sample_contributions(OK, [0, 1, 0], metric="ece"), "`metric` must be one of"),
        (lambda: ab.tie_bounds(OK, [0, 1, 0], metric="ece"), "must be a rank metric"),
        (lambda: ab.tie_bounds(OK, [0, 1, 0], metric="augrg"), "Did you mean 'augrc'"),
        (
            lambda: ab.published_aurc([1], [0], convention="torch-uncertainty"),
            "at least two samples",
        ),
        (lambda: ab.published_aurc([1], [0], convention="sklearn"), "`convention` must be one of"),
    ],
)
def test_bad_options(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    "kind", [bool, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64]
)
def test_every_numeric_dtype_of_the_loss(kind: type) -> None:
    loss = np.array([0, 1, 0, 1], dtype=kind)
    assert ab.augrc([0.9, 0.8, 0.7, 0.6], loss) == 0.1875
    assert ab.failure_auroc([0.9, 0.8, 0.7, 0.6], loss) == 0.75


@pytest.mark.parametrize(
    "kind", [np.int8, np.int64, np.float16, np.float32, np.float64, np.longdouble, object]
)
def test_every_numeric_dtype_of_the_confidence(kind: type) -> None:
    assert ab.augrc(np.array([9, 8, 7, 6], dtype=kind), [0, 1, 0, 1]) == 0.1875


def test_object_labels_that_do_not_hold_numbers_raise_an_error() -> None:
    with pytest.raises(DomainError, match="`confidence` must hold numbers; got object"):
        ab.augrc(np.array([0.5, "x"], dtype=object), [0, 1])


def test_inputs_stay_untouched_and_may_be_read_only() -> None:
    c, x = np.array([0.1, 0.9, 0.5]), np.array([1.0, 0.0, 1.0])
    before = c.copy(), x.copy()
    for array in (c, x):
        array.setflags(write=False)
    for function in EDGES:
        function(c, x)
    assert (c == before[0]).all()
    assert (x == before[1]).all()


def test_negative_zero_ties_with_zero() -> None:
    assert ab.tie_bounds([0.0, -0.0, 1.0], [0, 1, 0]).tied_share == pytest.approx(2 / 3)


def test_the_global_random_state_is_never_touched() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002  the state that must not change
    for function in EDGES:
        function(OK, [0, 1, 0])
    assert (before == np.random.get_state()[1]).all()  # noqa: NPY002


EXACT = 2**53


@pytest.mark.parametrize("function", [ab.augrc, ab.aurc, ab.failure_auroc, ab.risk_coverage_curve])
@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.longdouble, object])
def test_integers_that_float64_would_tie_raise_an_error(
    function: Callable[..., Any], kind: type
) -> None:
    confidence = np.array([EXACT + 3, EXACT + 1, EXACT, 5], dtype=kind)
    with pytest.raises(
        DomainError, match=r"float64 distinguishes; got 90.* at index 1 and 90.* 2,"
    ):
        function(confidence, [0, 1, 0, 1])


def test_large_integers_that_float64_distinguishes_keep_their_order() -> None:
    start = 1_700_000_000_000_000_000
    loss = [0, 1, 0, 1]
    microseconds = np.array([start + 1000 * i for i in range(4)])
    assert ab.augrc(microseconds, loss) == ab.augrc([0, 1, 2, 3], loss)
    equal = np.array([start, start, start + 5000, start + 5000])
    assert ab.augrc(equal, loss) == ab.augrc([0, 0, 1, 1], loss)
    with pytest.raises(DomainError, match=r"at index 0 and .* at index 1"):
        ab.augrc(np.array([start + i for i in range(4)]), loss)


def test_an_integer_beyond_float64_raises_an_error() -> None:
    with pytest.raises(DomainError, match="beyond the range of float64"):
        ab.augrc(np.array([10**400, 1, 2], dtype=object), [0, 1, 0])
    with pytest.raises(DomainError, match=r"predictions|confidence.*distinguishes"):
        ab.Predictions(prediction=[0, 1], labels=[0, 0], confidence=np.array([EXACT, EXACT + 1]))


def test_integers_are_checked_where_their_library_computes() -> None:
    torch = pytest.importorskip("torch")
    confidence = torch.tensor([EXACT + 1, EXACT, 1])
    with pytest.raises(DomainError, match="float64 distinguishes"):
        ab.augrc(confidence, torch.tensor([0.0, 1.0, 0.0], requires_grad=True))
    metrics = pytest.importorskip("abstain.integrations.torchmetrics")
    with pytest.raises(DomainError, match="got 9,007,199,254,740,993"):
        metrics.AUGRC().update(confidence, torch.tensor([0, 1, 0]))
