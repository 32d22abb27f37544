"""The paper's applications: each builds a Problem, chooses a method, and calls solve."""

from lopro.applications.compressive_sensing import BPDNResult, bpdn, bpdn_path

__all__ = ["BPDNResult", "bpdn", "bpdn_path"]
