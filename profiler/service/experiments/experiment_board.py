"""The experiments over agents: what was submitted, how far each has come, and which captures count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from profiler.model.quick_dataclass import dataclass
from profiler.service.experiments.course import Course


@dataclass(frozen=True, slots=True)
class SubmittedExperiment:
    """``session``: its session in the store, and what it is called by.  ``plan_name``: the plan's file name, for messages;
    ``plan_text``: the plan, whole.  ``submitted_ns``: ns since 1970.  ``is_cancelled``: somebody asked for its end."""

    session: str
    name: str
    plan_name: str
    plan_text: str
    submitted_ns: int
    course: Course
    is_cancelled: bool = False


class ExperimentBoard(Protocol):
    """Every method is one transaction.  All raise ``StoreError``."""

    def add(self, experiment: SubmittedExperiment) -> None: ...

    def experiment(self, session: str) -> SubmittedExperiment | None: ...

    def experiments(self, only_open: bool = False) -> tuple[SubmittedExperiment, ...]:
        """In the order of their submission; ``only_open``: without those that have ended."""

    def keep(self, session: str, course: Course) -> None:
        """The experiment has come so far."""

    def ask_cancel(self, session: str) -> None:
        """Nothing happens to one that has ended."""

    def count(self, session: str, captures: Sequence[str]) -> None:
        """These captures count; may be said again."""

    def counted(self, session: str) -> frozenset[str]:
        """SHA-256 of all captures that count."""
