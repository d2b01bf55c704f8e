"""Why a step of an upload is not done."""

from __future__ import annotations

from enum import StrEnum


class UploadProblem(StrEnum):
    """NOT_ACCEPTED, TOO_LARGE: never will be.  UNKNOWN, CONFLICT: to be begun again with the offer, whose answer says where to
    go on.  QUOTA, BUSY: to be tried again later."""

    NOT_ACCEPTED = "Not accepted"
    TOO_LARGE = "Too large"
    UNKNOWN = "No such upload"
    CONFLICT = "Other than held here"
    QUOTA = "Too much unfinished"
    BUSY = "Busy"


class UploadError(Exception):
    """``detail``: one line for the agent's log."""

    def __init__(self, problem: UploadProblem, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail


class NotAcceptable(Exception):
    """The content of an upload is refused for good; the message says why."""
