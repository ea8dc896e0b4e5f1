"""What the results of a benchmark consist of: plain records that reports show."""

from dataclasses import dataclass

from abstain.typing import FloatArray

__all__ = ["MEAN", "CalibrationRow", "CurvePoints", "Extreme", "MethodFacts", "ThresholdRow"]

#: Stands for the mean over the seeds where a run is named, as in `Comparison.estimates`.
MEAN = "mean"


@dataclass(frozen=True)
class MethodFacts:
    """What is known of a method.

    Attributes
    ----------
    name, title : str
        For scripts and for people.
    arm : str
        The arm whose networks it scores; of several the first that was chosen.
    source, meaning : str
        Where it is defined and what its confidence is; empty for what was added.
    added : bool
        Whether it is none of the catalogue.
    averages : bool
        Whether it belongs to the averaged prediction of passes or networks.
    """

    name: str
    title: str
    arm: str
    source: str = ""
    meaning: str = ""
    added: bool = False
    averages: bool = False


@dataclass(frozen=True)
class ThresholdRow:
    """What a threshold that was set on validation data achieves in a study.

    Attributes
    ----------
    study, method : str
        Names.
    run : str
        The seed, or "mean" for the means over the seeds at which something is accepted.
    risk, delta : float
        What was asked for: a selective risk of at most `risk`, but with a chance of `delta`.
    threshold : float or None
        On the scale of the method; None where the target is unattainable, and for means.
    bound : float
        The upper bound of the risk on validation data; NaN where the target is unattainable.
    n, accepted : int
        Samples, and those accepted; sums over the seeds for means.
    coverage, coverage_low, coverage_high : float
        Share accepted, with its interval; none (NaN) for means.
    selective_risk, selective_risk_low, selective_risk_high : float
        Share of failures among the accepted.
    excess : float
        Selective risk minus `risk`: positive is worse than promised.
    verdict : str
        As in `abstain.thresholds.RuleCheck`: "holds", "broken", "cannot tell", "nothing
        accepted" or "unattainable". For means the one that all seeds share, else "differs".
    holds, broken, runs : int
        For means: how many seeds hold, are broken, and there are.
    note : str
        Why there is no threshold, or what to be careful about.
    """

    study: str
    method: str
    run: str
    risk: float
    delta: float
    threshold: float | None
    bound: float
    n: int
    accepted: int
    coverage: float
    coverage_low: float
    coverage_high: float
    selective_risk: float
    selective_risk_low: float
    selective_risk_high: float
    excess: float
    verdict: str
    holds: int = 0
    broken: int = 0
    runs: int = 1
    note: str = ""


@dataclass(frozen=True)
class CalibrationRow:
    """How far confidences are from the chance of being right, in one study.

    Attributes
    ----------
    study, method, run : str
        Names; the run is a seed, or "mean" over the seeds.
    raw : float or None
        ECE of the confidences as they are; None for a method whose confidence is no probability.
    platt : float
        ECE of the confidences that were calibrated by Platt scaling on validation data.
    """

    study: str
    method: str
    run: str
    raw: float | None
    platt: float


@dataclass(frozen=True)
class Extreme:
    """One picture that a method is most wrong about.

    Attributes
    ----------
    study, method : str
        Names.
    run, seed : str and int
        The run that said so.
    kind : {"overconfident", "underconfident"}
        A failure with a high confidence, or a success with a low one.
    rank : int
        1 for the most extreme.
    exposure, row : str and int
        Which picture: the key of the exposure, and its row there.
    label, prediction : int
        Classes; the label -1 is no known class.
    confidence : float
        As the method gives it.
    quantile : float
        Share of the samples of the study that are less confident, ties half.
    """

    study: str
    method: str
    run: str
    seed: int
    kind: str
    rank: int
    exposure: str
    row: int
    label: int
    prediction: int
    confidence: float
    quantile: float


@dataclass(frozen=True, eq=False)
class CurvePoints:
    """A risk-coverage curve, thinned to what a picture can show.

    Attributes
    ----------
    coverage, selective_risk, generalized_risk : float64 ndarray of shape (points,)
        From the lowest coverage to 1.
    run : str
        The seed it is of.
    """

    coverage: FloatArray
    selective_risk: FloatArray
    generalized_risk: FloatArray
    run: str = ""
