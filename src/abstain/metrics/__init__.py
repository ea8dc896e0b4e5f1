"""Metrics of confidence scores and losses, and the catalogue `METRICS` of all metrics."""

from abstain.metrics.areas.augrc import augrc as augrc
from abstain.metrics.areas.augrc import augrc_terms as augrc_terms
from abstain.metrics.areas.augrc import excess_augrc as excess_augrc
from abstain.metrics.areas.augrc import (
    prediction_rejection_ratio as prediction_rejection_ratio,
)
from abstain.metrics.areas.aurc import achievable_aurc as achievable_aurc
from abstain.metrics.areas.aurc import (
    area_under_accuracy_rejection as area_under_accuracy_rejection,
)
from abstain.metrics.areas.aurc import aurc as aurc
from abstain.metrics.areas.balanced import balanced_augrc as balanced_augrc
from abstain.metrics.areas.balanced import balanced_aurc as balanced_aurc
from abstain.metrics.areas.excess import ause as ause
from abstain.metrics.areas.excess import e_aurc as e_aurc
from abstain.metrics.areas.excess import normalized_aurc as normalized_aurc
from abstain.metrics.areas.partial import partial_augrc as partial_augrc
from abstain.metrics.areas.partial import partial_aurc as partial_aurc
from abstain.metrics.areas.published import published_achievable_aurc as published_achievable_aurc
from abstain.metrics.areas.published import published_augrc as published_augrc
from abstain.metrics.areas.published import published_aurc as published_aurc
from abstain.metrics.areas.published import published_e_aurc as published_e_aurc
from abstain.metrics.areas.risk_coverage_areas import RiskCoverageAreas as RiskCoverageAreas
from abstain.metrics.areas.risk_coverage_areas import risk_coverage_areas as risk_coverage_areas
from abstain.metrics.binary_tasks import accepted_auroc as accepted_auroc
from abstain.metrics.binary_tasks import auprc_retention as auprc_retention
from abstain.metrics.binary_tasks import auroc_retention as auroc_retention
from abstain.metrics.binary_tasks import oc_ap as oc_ap
from abstain.metrics.binary_tasks import oc_auc as oc_auc
from abstain.metrics.calibration import classwise_ece as classwise_ece
from abstain.metrics.calibration import ece as ece
from abstain.metrics.calibration import mce as mce
from abstain.metrics.catalogue import metric_named as metric_named
from abstain.metrics.catalogue import metrics_named as metrics_named
from abstain.metrics.classifier import accuracy as accuracy
from abstain.metrics.classifier import balanced_accuracy as balanced_accuracy
from abstain.metrics.classifier import brier as brier
from abstain.metrics.classifier import nll as nll
from abstain.metrics.collaboration import multiclass_oc_auc as multiclass_oc_auc
from abstain.metrics.collaboration import oc_accuracy as oc_accuracy
from abstain.metrics.confidence_weighted.areas import CwsaSweep as CwsaSweep
from abstain.metrics.confidence_weighted.areas import auc_mcc as auc_mcc
from abstain.metrics.confidence_weighted.areas import auc_mcc_plus as auc_mcc_plus
from abstain.metrics.confidence_weighted.areas import cwsa_area as cwsa_area
from abstain.metrics.confidence_weighted.areas import cwsa_plus_area as cwsa_plus_area
from abstain.metrics.confidence_weighted.areas import cwsa_sweep as cwsa_sweep
from abstain.metrics.confidence_weighted.cwsa import cwsa as cwsa
from abstain.metrics.confidence_weighted.cwsa import cwsa_plus as cwsa_plus
from abstain.metrics.contributions import GroupContributions as GroupContributions
from abstain.metrics.contributions import group_contributions as group_contributions
from abstain.metrics.contributions import sample_contributions as sample_contributions
from abstain.metrics.entry import METRICS as METRICS
from abstain.metrics.entry import Metric as Metric
from abstain.metrics.entry import Need as Need
from abstain.metrics.estimator_weights import monte_carlo_aurc as monte_carlo_aurc
from abstain.metrics.estimator_weights import population_aurc as population_aurc
from abstain.metrics.estimator_weights import population_weight as population_weight
from abstain.metrics.estimator_weights import rank_weights as rank_weights
from abstain.metrics.f1_retention import f1_auc as f1_auc
from abstain.metrics.failure_ranking import failure_ap_error as failure_ap_error
from abstain.metrics.failure_ranking import failure_ap_success as failure_ap_success
from abstain.metrics.failure_ranking import failure_auroc as failure_auroc
from abstain.metrics.failure_ranking import fpr_at_tpr as fpr_at_tpr
from abstain.metrics.intervals import metric_difference as metric_difference
from abstain.metrics.intervals import metric_interval as metric_interval
from abstain.metrics.open_set import oscr as oscr
from abstain.metrics.open_set import scod_loss as scod_loss
from abstain.metrics.resampling import BootstrapResult as BootstrapResult
from abstain.metrics.resampling import metric_bootstrap as metric_bootstrap
from abstain.metrics.selective_confusion import SelectiveConfusion as SelectiveConfusion
from abstain.metrics.selective_confusion import (
    selective_confusion_matrix as selective_confusion_matrix,
)
from abstain.metrics.smooth_calibration import smooth_ece as smooth_ece
from abstain.metrics.ties import TieBounds as TieBounds
from abstain.metrics.ties import tie_bounds as tie_bounds
from abstain.metrics.weight_statistics import mean_weight_error_scale as mean_weight_error_scale
from abstain.metrics.weight_statistics import weight_bias as weight_bias
from abstain.metrics.weight_statistics import weight_error_scale as weight_error_scale
from abstain.metrics.weight_statistics import weight_mse as weight_mse
from abstain.metrics.weight_statistics import weight_mse_given_rank as weight_mse_given_rank
from abstain.metrics.weight_statistics import weight_variance as weight_variance
from abstain.metrics.working_points.entries import selective_accuracy as selective_accuracy
from abstain.metrics.working_points.points import WorkingPoint as WorkingPoint
from abstain.metrics.working_points.points import coverage_at_risk as coverage_at_risk
from abstain.metrics.working_points.points import generalized_risk as generalized_risk
from abstain.metrics.working_points.points import selective_risk as selective_risk
from abstain.metrics.working_points.points import working_point as working_point

__all__ = [
    "METRICS",
    "BootstrapResult",
    "CwsaSweep",
    "GroupContributions",
    "Metric",
    "Need",
    "RiskCoverageAreas",
    "SelectiveConfusion",
    "TieBounds",
    "WorkingPoint",
    "accepted_auroc",
    "accuracy",
    "achievable_aurc",
    "area_under_accuracy_rejection",
    "auc_mcc",
    "auc_mcc_plus",
    "augrc",
    "augrc_terms",
    "auprc_retention",
    "aurc",
    "auroc_retention",
    "ause",
    "balanced_accuracy",
    "balanced_augrc",
    "balanced_aurc",
    "brier",
    "classwise_ece",
    "coverage_at_risk",
    "cwsa",
    "cwsa_area",
    "cwsa_plus",
    "cwsa_plus_area",
    "cwsa_sweep",
    "e_aurc",
    "ece",
    "excess_augrc",
    "f1_auc",
    "failure_ap_error",
    "failure_ap_success",
    "failure_auroc",
    "fpr_at_tpr",
    "generalized_risk",
    "group_contributions",
    "mce",
    "mean_weight_error_scale",
    "metric_bootstrap",
    "metric_difference",
    "metric_interval",
    "metric_named",
    "metrics_named",
    "monte_carlo_aurc",
    "multiclass_oc_auc",
    "nll",
    "normalized_aurc",
    "oc_accuracy",
    "oc_ap",
    "oc_auc",
    "oscr",
    "partial_augrc",
    "partial_aurc",
    "population_aurc",
    "population_weight",
    "prediction_rejection_ratio",
    "published_achievable_aurc",
    "published_augrc",
    "published_aurc",
    "published_e_aurc",
    "rank_weights",
    "risk_coverage_areas",
    "sample_contributions",
    "scod_loss",
    "selective_accuracy",
    "selective_confusion_matrix",
    "selective_risk",
    "smooth_ece",
    "tie_bounds",
    "weight_bias",
    "weight_error_scale",
    "weight_mse",
    "weight_mse_given_rank",
    "weight_variance",
    "working_point",
]
