"""Paths of the aggregator's interface, below its address.  ``{job}``, ``{sha256}``, ``{session}`` are filled in."""

from __future__ import annotations

API = "/api/v1"
HELLO = f"{API}/agent/hello"
CLOCK = f"{API}/agent/clock"
JOBS = f"{API}/agent/jobs"
JOB_REPORT = f"{API}/agent/jobs/{{job}}/report"
UPLOADS = f"{API}/agent/uploads"
UPLOAD = f"{API}/agent/uploads/{{sha256}}"
UPLOAD_COMMIT = f"{API}/agent/uploads/{{sha256}}/commit"
EXPERIMENTS = f"{API}/experiments"
EXPERIMENT = f"{API}/experiments/{{session}}"
EXPERIMENT_CANCEL = f"{API}/experiments/{{session}}/cancel"
EXPERIMENT_RESULT = f"{API}/experiments/{{session}}/result"
HOSTS = f"{API}/hosts"
WANTED = f"{API}/agent/wanted"
