"""An agent killed before every call by which a job changes its disk, and before everything that it sends, and every power cut
then: what it had captured arrives once, is told of, and leaves the spool after that only."""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import pytest

from profiler.codec.container import decode
from profiler.protocol.job import JobReport
from support.agent_life import CAPTURES, JOB
from support.fake_aggregator import FakeAggregator, serving
from support.forked_lives import Life, Lives, forked_lives
from support.held_calls import SENDS, Call, CannotHold
from support.kill_points import is_boundary, quick_directory

MOST_CALLS = 300
REFUSAL = "not this one"


@dataclass(frozen=True, slots=True)
class Told:
    """What the aggregator has at a moment."""

    reports: dict[str, list[JobReport]]
    received: dict[str, bytearray]
    commits: list[str]

    def put_back(self, fake: FakeAggregator) -> None:
        fake.reports, fake.received, fake.commits = deepcopy(self.reports), deepcopy(self.received), list(self.commits)


def told(fake: FakeAggregator) -> Told:
    return Told(deepcopy(fake.reports), deepcopy(fake.received), list(fake.commits))


@pytest.fixture
def fake() -> Iterator[FakeAggregator]:
    with serving(FakeAggregator()) as server:
        yield server


def is_step(call: Call) -> bool:
    return is_boundary(call) or call.name in SENDS


def is_step_of_delivery(call: Call) -> bool:
    """Not of the capture, which is the same whatever becomes of it later."""
    return is_step(call) and "/spool/store/tmp/" not in call.path and call.name not in ("mkdir", "link")


@pytest.mark.parametrize(("refusal", "is_step"), [("", is_step), (REFUSAL, is_step_of_delivery)], ids=["accepted", "refused"])
def test_what_was_captured_arrives_once_whatever_call_was_the_last(
    fake: FakeAggregator, refusal: str, is_step: Callable[[Call], bool]
) -> None:
    died_at: list[Call] = []
    try:
        with quick_directory() as directory, forked_lives("support.agent_life:live", is_step) as lives:
            lives.rehearse(new_host(directory / "rehearsal", fake))
            for number in range(1, MOST_CALLS):
                life = one_life(lives, fake, directory / str(number), number, refusal)
                if life.died_at is None:
                    break
                died_at.append(life.died_at)
    except CannotHold as error:
        pytest.skip(str(error))
    assert life.said == ("taken", *(f"captured {position}" for position in range(CAPTURES)), "told")
    # A report; an offer, a chunk and a commit of each capture.
    assert sum(call.name in SENDS for call in died_at) >= 1 + 3 * CAPTURES
    print(*(f"{call.name} {call.path}" for call in died_at), sep="\n")


def one_life(lives: Lives, fake: FakeAggregator, directory: Path, number: int, refusal: str) -> Life:
    """It ends at this call; the next one goes on with what is left of the first, and once more with what a power cut leaves."""
    new_host(directory, fake)
    fake.refuse = refusal
    cut = directory.with_name(f"{number}-cut")
    life = lives.killed(directory, number, cut)
    then = told(fake)
    for left in (directory, cut):
        then.put_back(fake)
        captured = {digest(path) for path in (left / "spool").glob("store/captures/*/*.capture")}
        lives.whole(left)
        check(left / "spool", fake, captured, life)
        shutil.rmtree(left)
    return life


def new_host(directory: Path, fake: FakeAggregator) -> Path:
    """One that the aggregator has never heard of."""
    Told({}, {}, []).put_back(fake)
    directory.mkdir()
    (directory / "server").write_text(fake.url)
    return directory


def check(spool: Path, fake: FakeAggregator, captured: set[str], life: Life) -> None:
    """``captured``: what lay in the spool when the first life was over."""
    refused = {digest(path) for path in (spool / "refused").glob("*.capture")}
    arrived = refused if fake.refuse else set(fake.commits)
    assert captured <= arrived
    positions = sorted(decode(bytes(fake.received[sha]), sha).info.identity.position for sha in arrived)
    # What was said to be captured, and one more where the life ended before it was said.
    said = sum(bool(re.match("captured", line)) for line in life.said)
    assert positions == list(range(len(positions)))
    # A job of which nothing was noted is taken once more, as a whole.
    assert len(positions) in ((said, said + 1) if life.said else (0, CAPTURES))
    last = fake.reports[JOB][-1]
    assert last.state.is_final
    assert sorted(last.captures) == sorted(arrived)
    assert list(spool.glob("store/captures/*/*.capture")) == []
    assert rows(spool / "agent.sqlite", "captures") == rows(spool / "store/catalog.sqlite", "sessions") == 0


def rows(database: Path, table: str) -> int:
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
