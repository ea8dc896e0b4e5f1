"""Readers that read predictions in batches from files that do not fit in memory."""

from abstain.tables.scan.scan import PredictionScan as PredictionScan
from abstain.tables.scan.scan import ScannedBatch as ScannedBatch
from abstain.tables.scan.scan import Skipped as Skipped
from abstain.tables.scan.scan import scan_predictions as scan_predictions

__all__ = ["PredictionScan", "ScannedBatch", "Skipped", "scan_predictions"]
