"""What msgspec refuses becomes one sentence: the field, its rule, the value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from abstain._foundation import json_records, records
from abstain._foundation.records import (
    DISTINCT_NONEMPTY,
    AtLeastTwo,
    ClassNames,
    Fraction,
    NonBlankText,
    NonEmptyText,
    NonNegative,
    NonNegativeInt,
    Number,
    OpenFraction,
    Positive,
    PositiveInt,
    axes,
    between,
    entries,
)
from abstain.errors import DomainError, InputError, ShapeError
from abstain.typing import FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Everything:
    number: Number | None = None
    least: NonNegative = 1.0
    above: Positive = 1.0
    share: Fraction = 0.5
    chance: OpenFraction = 0.5
    count: NonNegativeInt = 3
    one: PositiveInt = 1
    two: AtLeastTwo = 2
    few: Annotated[int, between(1, 9)] = 1
    flag: bool = False
    kind: Literal["a", "b"] = "a"
    text: str = ""
    name: NonEmptyText = "x"
    word: NonBlankText = "x"
    numbers: tuple[Number, ...] = ()
    pair: tuple[Number, Number] = (0.0, 1.0)
    seeds: Annotated[tuple[Annotated[int, between(0, 9)], ...], DISTINCT_NONEMPTY] = (1,)
    table: Mapping[str, Any] = field(default_factory=dict)
    points: Annotated[tuple[Number, ...], entries("points", "a list of numbers")] = (1.0, 2.0)
    heights: Annotated[tuple[Number, ...], entries("points", "a list of numbers")] = (3.0, 4.0)
    classes: ClassNames = ("x", "y")
    means: Annotated[FloatArray, axes("K", "d")] | None = None
    center: Annotated[FloatArray, axes("d")] | None = None

    def __post_init__(self) -> None:
        records.check(self)


LONG = 10**400
CASES = [
    ("number", "3", InputError, "`number` must be a number; got '3'"),
    ("number", True, InputError, "`number` must be a number; got True"),
    ("number", float("nan"), DomainError, "`number` must be finite; got nan"),
    ("number", float("inf"), DomainError, "`number` must be finite; got inf"),
    ("number", LONG, DomainError, "`number` must be finite; got 1000"),
    ("least", -1, DomainError, "`least` must be at least 0; got -1"),
    ("above", 0, DomainError, "`above` must be above 0; got 0"),
    ("share", 1.5, DomainError, r"`share` must lie in \[0, 1\]; got 1.5"),
    ("chance", 1, DomainError, "`chance` must lie strictly between 0 and 1; got 1"),
    ("count", -1, DomainError, "`count` must be an integer of at least 0; got -1"),
    ("count", 2.0, InputError, "`count` must be an integer of at least 0; got 2.0"),
    ("count", True, InputError, "`count` must be an integer of at least 0; got True"),
    ("count", 2**63, DomainError, "`count` must be at most 9,223,372,036,854,775,807; got 9223"),
    ("one", 0, DomainError, "`one` must be an integer of at least 1; got 0"),
    ("two", 1, DomainError, "`two` must be an integer of at least 2; got 1"),
    ("few", 10, DomainError, "`few` must be at most 9; got 10"),
    ("flag", 1, InputError, "`flag` must be true or false; got 1"),
    ("flag", None, InputError, "`flag` must be true or false; got None"),
    ("kind", "c", InputError, "`kind` must be one of 'a', 'b'; got 'c'"),
    ("kind", 3, InputError, "`kind` must be one of 'a', 'b'; got 3"),
    ("text", 3, InputError, "`text` must be a text; got 3"),
    ("name", "", InputError, "`name` must be a text that is not empty; got ''"),
    ("word", "  ", InputError, "`word` must be a text that is not empty; got '  '"),
    ("numbers", "12", InputError, "`numbers` must be a list of numbers; got '12'"),
    ("numbers", (1, "x"), InputError, "`numbers` must be a number; got 'x' at index 1"),
    ("numbers", (1, np.inf), DomainError, "`numbers` must be finite; got inf at index 1"),
    ("pair", (1.0,), InputError, "`pair` must be a list of 2 numbers"),
    ("pair", (1.0, None), InputError, "`pair` must be a number; got None at index 1"),
    ("seeds", (), InputError, r"`seeds` must be a list that is not empty; got \(\)"),
    ("seeds", (1, 1), InputError, "`seeds` must hold each value once; got 1 twice"),
    ("seeds", (1, 10), DomainError, "`seeds` must hold whole numbers from 0 to 9; got 10 at in"),
    ("table", 3, InputError, r"`table` must be a table: \[table\]; got 3"),
    ("points", (), ShapeError, "`points` is empty; at least one entry is needed"),
    ("points", 3, InputError, "`points` must be a list of numbers; got 3"),
    ("heights", (3.0,), ShapeError, "`heights` must have one entry for each of the 2 points; got 1"),
    ("classes", ("x", "x"), InputError, "`classes` must be a list of distinct class names"),
    ("classes", ([], "x"), InputError, "`classes` must be a list of distinct class names"),
    ("classes", "xy", InputError, "`classes` must be a list of distinct class names; got 'xy'"),
    ("means", [1.0], InputError, r"`means` must be an array of floats; got \[1.0\]"),
    ("means", np.ones((2, 2), int), InputError, "`means` must be an array of floats; got int64"),
    ("means", np.ones(2), ShapeError, r"`means` must have shape \(K, d\); got \(2,\)"),
    ("means", np.ones((3, 2)), ShapeError, r"`means` must have shape \(K, d\) with K = 2; got"),
    ("means", np.full((2, 2), np.nan), DomainError, "`means` must be finite; got nan at"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "error", "says"), CASES)
def test_a_value_that_cannot_be_raises_an_error_in_a_sentence(name, value, error, says):
    with pytest.raises(error, match=f"^{says}") as caught:
        Everything(**{name: value})
    assert type(caught.value) is error
    assert len(str(caught.value)) < 200


def test_values_are_kept_as_their_types():
    x = np.arange(4.0, dtype=">f8").reshape(2, 2)
    made = Everything(
        number=np.float32(0.5), count=np.int8(4), flag=np.True_, numbers=[1, 2], means=x
    )
    assert (made.number, type(made.number)) == (0.5, float)
    assert (made.count, type(made.count)) == (4, int)
    assert made.flag is True
    assert made.numbers == (1.0, 2.0)
    assert [type(entry) for entry in made.numbers] == [float, float]
    assert made.means.dtype == np.dtype(np.float64)
    assert not made.means.flags.writeable
    np.testing.assert_array_equal(made.means, x)


def test_axes_of_one_name_have_one_length():
    Everything(means=np.ones((2, 3)), center=np.ones(3))
    with pytest.raises(ShapeError, match=r"`center` must have shape \(d,\) with d = 3; got \(2,\)"):
        Everything(means=np.ones((2, 3)), center=np.ones(2))


@dataclass(frozen=True)
class Written:
    rate: Positive
    inner: Any = None

    def __post_init__(self) -> None:
        records.check_unconverted(self, "part.{}".format)


def test_what_is_held_only_stays_as_it_was_written():
    assert type(Written(1).rate) is int
    with pytest.raises(DomainError, match=r"`part\.rate` must be above 0; got -1"):
        Written(-1)


@dataclass(frozen=True)
class Outer:
    parts: tuple[Written, ...]

    def __post_init__(self) -> None:
        records.check(self)


def test_records_inside_a_record_are_made_and_checked():
    assert records.from_fields(Outer, {"parts": [{"rate": 2}]}, "a test").parts == (Written(2),)
    for wrong in ({}, {"rate": "x"}, 3):
        with pytest.raises(InputError, match=r"parts\[1\]"):
            records.from_fields(Outer, {"parts": [{"rate": 2}, wrong]}, "a test")


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({"rate": 1}, "the field `inner` is missing in a test"),
        ({"rat": 1, "inner": 2}, "the field `rate` is missing in a test, and `rat` is not a field"),
        (
            {"rate": 1, "inner": 2, "iner": 3},
            "`iner` is not a field of a test. Did you mean 'inner'",
        ),
    ],
)
def test_every_field_of_a_file_is_there_and_no_other(found, says):
    with pytest.raises(InputError, match=says):
        records.from_fields(Written, found, "a test")


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (bool, "no", "`x.y` must be true or false; got 'no'"),
        (PositiveInt, 0, "`x.y` must be an integer of at least 1; got 0"),
        (list[PositiveInt], [1, 0], "`x.y` must hold whole numbers from 1 to"),
    ],
)
def test_one_value_has_the_same_sentences(kind, value, says):
    with pytest.raises(InputError, match=says):
        records.check_value(value, kind, "x.y")
    assert records.check_value(3, NonNegativeInt, "x") == 3


@pytest.mark.parametrize("version", [3, "1", True, None, 1.0])
def test_an_unknown_version_raises_an_error(version):
    with pytest.raises(InputError, match="the field `version` must be 1 or 2; got"):
        json_records.pop_version({"version": version}, "version", (1, 2))


def test_an_unknown_kind_names_the_nearest():
    with pytest.raises(InputError, match=r"one of .platt., .isotonic.; got .plat.\. Did you mean"):
        json_records.pop_kind({"kind": "plat"}, ("platt", "isotonic"))
    with pytest.raises(InputError, match="the field `kind` must be 'rule'; got None"):
        json_records.pop_kind({}, ("rule",))
