"""What the catalogue knows of a method, and what a method may be fitted on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from abstain._foundation import checks
from abstain.benchmark.outputs import Outputs
from abstain.errors import InputError
from abstain.typing import Array, FloatArray

#: From the outputs for n pictures to their confidences (n,), float64, higher is more trusted.
ScoreFunction: TypeAlias = Callable[[Outputs], FloatArray]

#: What a method can need, and what is missing where it is not there.
NEEDS: dict[str, str] = {
    "features": "what the last layer sees (`features`)",
    "samples": "passes with dropout on (`samples`)",
    "own": "the confidence that the objective learned (`confidence`)",
    "last-layer": "the last layer (`weight` and `bias` of what is known)",
    "ensemble": "outputs of several networks (`ensemble_outputs`)",
}

#: On which of the known outputs a method can be fitted; the empty text stands for none.
FITTED_ON = ("", "train", "validation")


@dataclass(frozen=True, eq=False)
class Known:
    """What a method may be fitted on: never the pictures it will be judged by.

    Attributes
    ----------
    train : Outputs
        For the pictures that the network was trained on.
    validation : Outputs
        For pictures of the same kind that it was not trained on.
    weight : ndarray of shape (K, d), optional
        Of the last layer, float32.
    bias : ndarray of shape (K,), optional
        Of the last layer, float32.
    """

    train: Outputs
    validation: Outputs
    weight: Array | None = None
    bias: Array | None = None


@dataclass(frozen=True)
class Method:
    """A confidence score, with the network it scores and what it is fitted on.

    Attributes
    ----------
    name : str
        The name scripts and tables use.
    title : str
        The name people read.
    source : str
        Where it is defined.
    objective : str
        The name in `abstain.training.OBJECTIVES` of what the network was trained by.
    needs : frozenset of str
        Of the names in `NEEDS`. Class logits are always there.
    fit : callable
        From `Known` to the function that scores: from outputs for n pictures to float64 (n,),
        higher is more trusted, that looks at no label.
    fitted_on : str
        "train" or "validation": the only part of `Known` that is looked at, beside the last
        layer; empty where nothing is fitted.
    meaning : str
        What the confidence is, in a few words.
    same_as : str
        The name of the method of which this is another name, as papers have it; empty for most.
        Its numbers are the same, so it is no method of its own where nobody asks for it.

    Raises
    ------
    InputError
        A need or a part to be fitted on that does not exist, or a method of ensembles that is
        fitted.
    """

    name: str
    title: str
    source: str
    objective: str
    needs: frozenset[str]
    fit: Callable[[Known], ScoreFunction]
    fitted_on: str = ""
    meaning: str = ""
    same_as: str = ""

    def __post_init__(self) -> None:
        """Refuse needs that nobody could meet."""
        checks.one_of(self.fitted_on, "fitted_on", FITTED_ON)
        for need in sorted(self.needs):
            if need not in NEEDS:
                listed = ", ".join(map(repr, NEEDS))
                msg = f"`needs` of the method {self.name!r} must be of {listed}; got {need!r}"
                raise InputError(msg)

        if self.fitted_on and "ensemble" in self.needs:
            # All that an ensemble is asked about is what it will be judged by.
            msg = (
                f"a method of ensembles must not be fitted; {self.name!r} is, on "
                f"{self.fitted_on!r}. Leave `fitted_on` empty"
            )
            raise InputError(msg)

    @property
    def averages(self) -> bool:
        """Whether the prediction it belongs to is that of the mean over passes or networks."""
        return not self.needs.isdisjoint({"samples", "ensemble"})

    def missing_to_fit(self, known: Known) -> str:
        """Return what is missing to fit it, by name, or an empty string."""
        lacking = []
        if "last-layer" in self.needs and (known.weight is None or known.bias is None):
            lacking.append(NEEDS["last-layer"])
        if self.fitted_on and not has(getattr(known, self.fitted_on), "features", self.needs):
            lacking.append(f"{NEEDS['features']} of the {self.fitted_on} pictures")
        return _said(self.name, lacking)

    def missing_to_score(self, outputs: Outputs) -> str:
        """Return what the outputs lack to be scored, by name, or an empty string."""
        asked = [need for need in NEEDS if not has(outputs, need, self.needs)]
        return _said(self.name, [NEEDS[need] for need in asked])


def has(outputs: Outputs, need: str, needs: frozenset[str]) -> bool:
    """Tell whether a need is met by outputs, or is none of these needs."""
    if need not in needs or need == "last-layer":
        return True
    if need == "ensemble":
        # Passes are kept where networks of an ensemble are; those have no common features.
        return outputs.samples is not None and outputs.features is None
    return getattr(outputs, {"own": "confidence"}.get(need, need)) is not None


def _said(name: str, lacking: list[str]) -> str:
    return f"the method {name!r} needs {'; '.join(lacking)}" if lacking else ""
