"""What agents upload becomes a run exactly when it is what their job was to make; nothing of the agent's is trusted."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profiler.codec.container import decode, encode
from profiler.codec.framing import frame, read_head, read_preamble, read_sections
from profiler.errors import FormatError
from profiler.model.capture import Capture
from profiler.model.dso import Dso, DsoKind
from profiler.model.event import Event
from profiler.model.run import Metric, RunIdentity, RunMode
from profiler.model.stack_table import StackTable
from profiler.protocol.job import JobKind, JobOrder, JobReport, JobState
from profiler.service.ingest.capture_checks import checked_capture
from profiler.service.ingest.commitment import commit_upload
from profiler.service.ingest.ingest import Ingest
from profiler.service.ingest.limits import IngestLimits
from profiler.service.ingest.reception import offer_upload
from profiler.service.ingest.upload_error import NotAcceptable, UploadError
from profiler.service.jobs.unjudged import UNJUDGED
from support.sample_captures import run_info, same, two_stack_capture
from support.uploading import (
    AGENT,
    JOB,
    OTHER_AGENT,
    OTHER_JOB,
    PLAIN_JOB,
    START,
    SWAP_JOB,
    Bench,
    capture_bytes,
    offer_of,
    open_bench,
    send,
    upload,
)

CAPTURE = two_stack_capture(run_info("20260301-100000-aaaa", "x", position=2))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return open_bench(tmp_path / "store")


@pytest.mark.parametrize(
    ("ended", "failure"),
    [
        (JobReport(JobState.DONE, "1 window"), UNJUDGED),
        (JobReport(JobState.RUNNING), UNJUDGED),
        (JobReport(JobState.LOST, "host1 was silent"), "its job is lost: host1 was silent"),
        (JobReport(JobState.CANCELLED, "its round was over"), "its job is cancelled: its round was over"),
        (JobReport(JobState.FAILED), "its job is failed"),
    ],
)
def test_no_capture_counts_before_its_round_is_judged(bench: Bench, ended: JobReport, failure: str) -> None:
    """It may have begun too late, or its round be over: pages and commands that look meanwhile leave it out."""
    assert bench.ingest.jobs.report(AGENT, JOB, ended, 5)
    assert upload(bench.ingest, capture_bytes()).refusal == ""
    (run,) = bench.ingest.store.runs()
    assert run.summary.failure == failure


def test_what_a_single_job_captured_before_it_failed_counts(bench: Bench) -> None:
    """It is in a session of its own, which has no rounds, and says itself that it was cut short."""
    ingest = bench.ingest
    session = ingest.store.begin_session(replace(START, has_rounds=False))
    order = JobOrder("single", JobKind.ATTACH, "node", "fat", session, "node-1", 0, window_s=10.0, frequency_hz=1999)
    ingest.jobs.add(AGENT, order, 1)
    assert ingest.jobs.report(AGENT, "single", JobReport(JobState.FAILED, "the process ended"), 5)
    data = capture_bytes()
    assert upload(ingest, data, offer_of(data, "single")).refusal == ""
    assert [run.summary.failure for run in ingest.store.runs(session)] == [""]


def test_a_capture_is_filed_under_the_identity_of_its_order(bench: Bench) -> None:
    data = capture_bytes(position=2)
    offer = offer_of(data)
    assert upload(bench.ingest, data).refusal == ""
    (run,) = bench.ingest.store.runs()
    assert (run.origin, run.summary.variant, run.summary.round, run.key.session) == (offer.sha256, "fat", 3, bench.session)
    stored = bench.ingest.store.load(run)
    # Round 3 of a job of four windows: its window 2 is the 15th of the session.
    expected = RunIdentity(bench.session, "fat", 3, RunMode.PROFILED, 3 * 4 + 2, instance="node-1")
    assert stored.info.identity == expected
    sent = decode(data, "sent")
    assert same(replace(stored, info=sent.info), sent)
    as_filed = replace(sent.info, outcome=replace(sent.info.outcome, failure=UNJUDGED))
    assert replace(stored.info, identity=sent.info.identity) == as_filed
    assert bench.ingest.files.names() == ()


def test_a_commit_may_be_repeated(bench: Bench) -> None:
    data = capture_bytes()
    assert [upload(bench.ingest, data).refusal for _ in range(3)] == ["", "", ""]
    assert offer_upload(bench.ingest, AGENT, offer_of(data)).is_committed
    assert len(bench.ingest.store.runs()) == 1


def test_a_plain_run(bench: Bench) -> None:
    data = capture_bytes(1, RunMode.PLAIN)
    assert upload(bench.ingest, data, offer_of(data, PLAIN_JOB)).refusal == ""
    assert [run.summary.position for run in bench.ingest.store.runs()] == [3 * 2 + 1]


@pytest.mark.parametrize("job", ["", "nothing", "../../etc/passwd", "' OR 1=1 --", SWAP_JOB, OTHER_JOB])
def test_captures_of_jobs_that_the_agent_does_not_have(bench: Bench, job: str) -> None:
    with pytest.raises(UploadError, match=r"this agent has no job|a capture comes from a job that records"):
        offer_upload(bench.ingest, AGENT, offer_of(capture_bytes(), job))


def test_the_same_capture_of_another_agent(bench: Bench) -> None:
    """It was not theirs: one run, under the first one's identity."""
    data = capture_bytes()
    upload(bench.ingest, data)
    second = bench.ingest.store.begin_session(replace(bench.ingest.store.sessions()[0].start))
    order = bench.ingest.jobs.job(OTHER_JOB)
    assert order is not None
    bench.ingest.jobs.add(OTHER_AGENT, replace(order.order, id="job-x", session=second), 1)
    assert "accepted from another job" in upload(bench.ingest, data, offer_of(data, "job-x"), OTHER_AGENT).refusal
    assert [run.key.session for run in bench.ingest.store.runs()] == [bench.session]


def test_a_session_that_was_removed(bench: Bench) -> None:
    data = capture_bytes()
    send(bench.ingest, data, offer_of(data))
    bench.ingest.store.remove_session(bench.session)
    result = commit_upload(bench.ingest, AGENT, offer_of(data).sha256)
    assert result.refusal == f"its session {bench.session} is not there any more"


def test_a_job_makes_only_so_many_captures(bench: Bench) -> None:
    """Two runs were ordered: 8 x 2 + 16 at most are taken."""
    refusals = []
    for position in range(33):
        data = capture_bytes(position, RunMode.PLAIN)
        refusals.append(upload(bench.ingest, data, offer_of(data, PLAIN_JOB)).refusal)
    assert refusals[:32] == [""] * 32
    assert "more than it can have made" in refusals[32]


def with_identity(capture: Capture, **change: object) -> Capture:
    identity = replace(capture.info.identity, **change)  # type: ignore[arg-type]
    return replace(capture, info=replace(capture.info, identity=identity))


def with_info(capture: Capture, **change: object) -> Capture:
    return replace(capture, info=replace(capture.info, **change))  # type: ignore[arg-type]


def with_outcome(capture: Capture, **change: object) -> Capture:
    return with_info(capture, outcome=replace(capture.info.outcome, **change))  # type: ignore[arg-type]


def with_samples(capture: Capture, **change: object) -> Capture:
    return replace(capture, samples=replace(capture.samples, **change))  # type: ignore[arg-type]


def chain(depth: int) -> Capture:
    stacks = StackTable(np.arange(-1, depth - 1, dtype=np.int32), np.zeros(depth, np.int32))
    return replace(CAPTURE, stacks=stacks)


REFUSED: dict[str, tuple[Capture, str]] = {
    "mode": (with_identity(CAPTURE, mode=RunMode.IMPORTED), "mode imported, but the job is to make captures of mode profiled"),
    "plain": (with_identity(CAPTURE, mode=RunMode.PLAIN), "mode plain"),
    "position": (with_identity(CAPTURE, position=-1), "position -1"),
    "far position": (with_identity(CAPTURE, position=1 << 40), "position 1099511627776"),
    "clock": (with_info(CAPTURE, started_at="yesterday"), "started_at is no time stamp: 'yesterday'"),
    "zone": (with_info(CAPTURE, started_at="2026-03-01T10:00:00"), "lacks the time zone"),
    "build ID": (
        with_info(CAPTURE, program=replace(CAPTURE.info.program, build_id="../../x")),
        "build ID is not hexadecimal: '../../x'",
    ),
    "negative": (with_outcome(CAPTURE, wall_ns=-1), "negative"),
    "large": (with_outcome(CAPTURE, user_ns=1 << 63), "beyond 64 bits"),
    "infinite": (with_outcome(CAPTURE, metrics=(Metric("m", math.inf, "ns"),)), "not finite"),
    "not a number": (with_outcome(CAPTURE, metrics=(Metric("m", 1.0, "ns", (math.nan,)),)), "not finite"),
    "surrogate": (with_info(CAPTURE, command=("\ud800",)), "half of a surrogate pair"),
    "text": (with_info(CAPTURE, revision="x" * (1 << 21)), "a text of 2097152 characters"),
    "string": (replace(CAPTURE, strings=(*CAPTURE.strings[:2], "\udfff")), "half of a surrogate pair"),
    "path": (replace(CAPTURE, dsos=(Dso("/x\0y", b"", DsoKind.FILE), CAPTURE.dsos[1])), "no file has the path"),
    "long build ID": (replace(CAPTURE, dsos=(Dso("/x", b"x" * 65, DsoKind.FILE), CAPTURE.dsos[1])), "no file has the path"),
    "rate": (replace(CAPTURE, events=(Event("cpu-clock", "ns", 4999, 0),)), "recorded at 4999 Hz, but 1999 Hz were ordered"),
    "nameless": (replace(CAPTURE, events=(Event("", "ns", 1999, 0),)), "an event without a name"),
    "weight": (with_samples(CAPTURE, weight=np.array([1, -1, 1], np.int64)), "weights"),
    "overflow": (with_samples(CAPTURE, weight=np.full(3, 1 << 62, np.int64)), "weights"),
    "order": (with_samples(CAPTURE, time_ns=np.array([3, 2, 1], np.uint64)), "not in the order of time"),
    "depth": (chain(20_000), "a stack of more than 16384 frames"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(bench: Bench, name: str) -> None:
    capture, reason = REFUSED[name]
    data = encode(capture)
    first = upload(bench.ingest, data)
    assert reason in first.refusal
    assert "\n" not in first.refusal
    assert upload(bench.ingest, data) == first
    assert not offer_upload(bench.ingest, AGENT, offer_of(data)).is_committed
    assert bench.ingest.store.runs() == ()
    assert bench.ingest.files.names() == ()


def test_names_that_are_no_utf_8_are_taken(bench: Bench) -> None:
    capture = with_info(replace(CAPTURE, strings=("caf\udce9", "b", "c")), command=("/opt/caf\udce9",))
    assert upload(bench.ingest, encode(capture)).refusal == ""
    assert bench.ingest.store.runs()[0].summary.command == ("/opt/caf\udce9",)


def test_a_failed_run_is_kept_whatever_was_recorded_in_its_place(bench: Bench) -> None:
    capture = with_outcome(replace(CAPTURE, events=(Event("cpu-clock", "ns", 4999, 0),)), failure="cycles are not counted")
    assert upload(bench.ingest, encode(capture)).refusal == ""


def refusals_of(ingest: Ingest, contents: list[bytes]) -> list[str]:
    return [upload(ingest, content).refusal for content in contents]


def test_truncated_and_damaged_containers_are_refused(bench: Bench) -> None:
    whole = capture_bytes()
    flipped = [whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :] for at in (0, 9, 20, 40, len(whole) // 2)]
    cut = [whole[:size] for size in (1, 31, len(whole) // 2, len(whole) - 1)] + [whole + b"\0"]
    assert all(refusals_of(bench.ingest, flipped + cut))
    assert bench.ingest.store.runs() == ()


def test_every_flip_of_one_byte_is_refused() -> None:
    """The whole head, and the beginning of the first table."""
    whole = capture_bytes()
    for at in range(1200):
        with pytest.raises(FormatError):
            decode(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :], "flipped", IngestLimits().capture)


def test_flips_by_somebody_who_corrects_the_checksums() -> None:
    """Each is refused, or is a capture that can be read; nothing else happens."""
    view = memoryview(capture_bytes(repeat=40))
    preamble = read_preamble(view, "x")
    head, sections = bytes(read_head(view, preamble, "x")), [bytes(section) for section in read_sections(view, preamble, "x")]
    order = JobOrder(JOB, JobKind.ATTACH, "node", "fat", "s", "node-1", round=3, windows=4)
    outcomes = set()
    for number, section in enumerate(sections):
        for at in range(0, len(section), 3):
            flipped = section[:at] + bytes([section[at] ^ (1 << at % 8)]) + section[at + 1 :]
            data = frame(preamble.version, head, [*sections[:number], flipped, *sections[number + 1 :]])
            try:
                checked_capture(decode(data, "flipped", IngestLimits().capture), order)
                outcomes.add("taken")
            except (FormatError, NotAcceptable):
                outcomes.add("refused")
    assert outcomes == {"taken", "refused"}


def test_jobs_are_named_by_the_agent_that_has_them(bench: Bench) -> None:
    data = capture_bytes()
    assert upload(bench.ingest, data, offer_of(data, OTHER_JOB), OTHER_AGENT).refusal == ""
    other = capture_bytes(1)
    assert upload(bench.ingest, other, offer_of(other, JOB), AGENT).refusal == ""
    assert len(bench.ingest.store.runs()) == 2
