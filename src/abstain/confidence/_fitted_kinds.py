"""The scores that need fitting, as the catalogue holds them."""

from abstain.confidence import combined, gaussian, neighbors, ranked, rectified, tuned_norm
from abstain.confidence import tuned_temperature as tempered
from abstain.confidence import virtual_logit as vim
from abstain.confidence.fitted import FitNeed, FittedKind

_FEATURES = frozenset({FitNeed.FEATURES})
_NOTHING: frozenset[FitNeed] = frozenset()

#: In the order the documentation shows them.
KINDS: tuple[FittedKind, ...] = (
    FittedKind(
        "mahalanobis",
        "Mahalanobis distance",
        gaussian.fit_mahalanobis,
        gaussian.Mahalanobis,
        "minus the squared distance to the nearest class mean, by the covariance the classes share",
        "Lee et al. (2018), https://arxiv.org/abs/1807.03888, eq. 2",
        _FEATURES | {FitNeed.LABELS},
        _FEATURES,
        {"shrinkage": "none"},
    ),
    FittedKind(
        "relative_mahalanobis",
        "Relative Mahalanobis distance",
        gaussian.fit_relative_mahalanobis,
        gaussian.RelativeMahalanobis,
        "how much nearer the nearest class is than the Gaussian of all classes together",
        "Ren et al. (2021), https://arxiv.org/abs/2106.09022 (RMD)",
        _FEATURES | {FitNeed.LABELS},
        _FEATURES,
        {"shrinkage": "none"},
    ),
    FittedKind(
        "knn",
        "Distance to the k-th neighbor",
        neighbors.fit_neighbors,
        neighbors.NeighborDistance,
        "minus the distance to the k-th nearest training sample, features divided by their length",
        "Sun et al. (2022), https://arxiv.org/abs/2204.06507",
        _FEATURES,
        _FEATURES,
        {"k": neighbors.DEFAULT_K, "normalize": True},
    ),
    FittedKind(
        "vim",
        "Virtual-logit matching (ViM)",
        vim.fit_virtual_logit,
        vim.VirtualLogit,
        "the energy of the logits minus a virtual logit: how far the features leave the subspace "
        "in which those of the training data vary most",
        "Wang et al. (2022), https://arxiv.org/abs/2203.10807",
        _FEATURES,
        _FEATURES,
        {"dim": None, "last_layer": None},
    ),
    FittedKind(
        "react",
        "Rectified activations (ReAct)",
        rectified.fit_rectified,
        rectified.RectifiedActivations,
        "the energy of the logits after large features are cut off at a percentile of training",
        "Sun et al. (2021), https://arxiv.org/abs/2111.12797",
        _FEATURES | {FitNeed.LAST_LAYER},
        _FEATURES,
        {"percentile": rectified.DEFAULT_PERCENTILE, "base": "energy", "temperature": 1.0},
        required=("last_layer",),
    ),
    FittedKind(
        "pnorm",
        "MaxLogit-pNorm, tuned",
        tuned_norm.fit_norm,
        tuned_norm.TunedNorm,
        "the largest centered logit over the p-norm with the best p, or the softmax response "
        "where no p beats it",
        "Cattelan & Silva (2024), https://arxiv.org/abs/2305.15508 (MaxLogit-pNorm)",
        frozenset({FitNeed.LOGITS, FitNeed.OUTCOMES}),
        frozenset({FitNeed.LOGITS}),
        {"base": "mls", "exponents": None, "temperatures": None},
        searches=True,
        weighted=True,
    ),
    FittedKind(
        "temperature",
        "Tuned temperature",
        tempered.fit_temperature_score,
        tempered.TunedTemperature,
        "a score of the catalogue at the temperature that is best by a criterion",
        "Guo et al. (2017), https://arxiv.org/abs/1706.04599; by AURC: Cattelan & Silva (2024)",
        frozenset({FitNeed.CLASS_SCORES}),
        frozenset({FitNeed.CLASS_SCORES}),
        {"score": "msr", "temperature": None, "temperatures": None},
        searches=True,
        weighted=True,
    ),
    FittedKind(
        "rank",
        "Place among the fitting data",
        ranked.fit_rank,
        ranked.Ranked,
        "any score on the scale of its own distribution: the share of fitting samples below it",
        "the empirical distribution function, ties counted half",
        _NOTHING,
        _NOTHING,
        required=("score",),
        weighted=True,
    ),
    FittedKind(
        "combine",
        "Combination of scores",
        combined.fit_combined,
        combined.Combined,
        "the mean or product of scores on one scale, or the sum that predicts correctness best",
        "learned: logistic regression, Platt (1999)",
        _NOTHING,
        _NOTHING,
        {"how": "mean", "scale": "auto", "regularization": 1.0},
        required=("scores",),
        weighted=True,
    ),
)
