"""The paper's applications: each builds a Problem, chooses a method, and calls solve."""

from lopro.applications.compressive_sensing import BPDNResult, bpdn, bpdn_path
from lopro.applications.metric_learning import MetricResult, learn_metric

__all__ = ["BPDNResult", "MetricResult", "bpdn", "bpdn_path", "learn_metric"]
