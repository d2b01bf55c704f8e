"""Record beginnings against a walk over the sizes, on windows whose contents try to look like records."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.perf_data import record_chain
from collectors.perf_data.record_chain import record_starts

WORDS = 200_000  # three times what is read link by link in any case


def header(kind: int, size: int) -> int:
    return kind | size << 48


def window(seed: int, largest_words: int, content: str, kinds: tuple[int, ...] = (3, 7, 9, 10)) -> tuple[memoryview, list[int]]:
    """Records of random sizes up to the end of the window, and where they begin."""
    random = np.random.default_rng(seed)
    words = np.zeros(WORDS, np.uint64)
    if content == "random":
        words[:] = random.integers(0, 2**63, WORDS, np.int64)
    elif content == "headers":
        words[:] = [header(kind, 8 * size) for kind, size in random.integers([1, 1], [22, largest_words], (WORDS, 2)).tolist()]
    elif content == "one header":
        words[:] = header(9, 8 * 3)
    starts, position = [], 0
    while position < WORDS:
        size = int(random.integers(1, largest_words + 1))
        words[position] = header(int(random.choice(kinds)), 8 * size)
        starts.append(position)
        position += size
    return memoryview(words.tobytes()), starts


@pytest.mark.parametrize("content", ["zeros", "random", "headers", "one header"])
@pytest.mark.parametrize("largest_words", [2, 30, 200, 3000])
@pytest.mark.parametrize("seed", range(3))
def test_every_record_is_found(seed: int, largest_words: int, content: str) -> None:
    view, starts = window(seed, largest_words, content)
    assert record_starts(view).tolist() == starts


@pytest.fixture
def by_blocks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """Fills with (first, number, end) of what was found block by block."""
    made = []
    block_by_block = record_chain._block_by_block

    def counted(words: np.ndarray, begin: int, mean_words: int) -> tuple[np.ndarray, int]:
        found, following = block_by_block(words, begin, mean_words)
        made.append((begin, len(found), following))
        return found, following

    monkeypatch.setattr(record_chain, "_block_by_block", counted)
    return made


@pytest.mark.parametrize("kinds", [(3, 7, 9, 10), (9, 22)], ids=["usual", "stacks of programs in records of their own"])
def test_blocks_are_used_where_records_are_short(by_blocks: list[tuple[int, int, int]], kinds: tuple[int, ...]) -> None:
    """The others of these tests would pass if all were done link by link."""
    view, starts = window(1, 30, "random", kinds)
    assert record_starts(view).tolist() == starts
    ((begin, found, following),) = by_blocks
    assert begin in starts
    assert found == len(starts) - starts.index(begin)
    assert following >= WORDS


def test_a_chain_that_is_alone_is_not_followed_to_the_end(by_blocks: list[tuple[int, int, int]]) -> None:
    """No block begins with records of a type that nobody knows; one step for each of them takes fifty times as long as plain
    Python does."""
    view, starts = window(1, 30, "zeros", (4711,))
    assert record_starts(view).tolist() == starts
    ((_, found, following),) = by_blocks
    assert 0 < found <= 2048 < len(starts) / 4
    assert following < WORDS / 2


@pytest.mark.parametrize("at", [70_000, 150_000])
def test_the_chain_ends_at_a_record_without_a_size(at: int) -> None:
    view, starts = window(2, 30, "headers")
    broken = next(start for start in starts if start >= at)
    words = np.frombuffer(view, np.uint64).copy()
    words[broken] = header(9, 0)
    found = record_starts(memoryview(words.tobytes())).tolist()
    upto = starts.index(broken) + 1
    assert found[:upto] == starts[:upto]


@pytest.mark.parametrize("at", [0, 30_000, 70_000, 150_000])
def test_zeros_behind_the_last_record_are_not_walked(at: int) -> None:
    """Such is the end of a file that a power cut left."""
    view, starts = window(3, 30, "zeros")
    kept = [start for start in starts if start < at]
    words = np.frombuffer(view, np.uint64).copy()
    words[at:] = 0
    found = record_starts(memoryview(words.tobytes())).tolist()
    assert found[: len(kept)] == kept
    assert len(found) <= len(kept) + 2


@pytest.mark.parametrize("size", [0, 5, 8, 15, 16])
def test_short_windows(size: int) -> None:
    view = memoryview(np.array([header(9, 8), header(9, 8)], np.uint64).tobytes())[:size]
    assert record_starts(view).tolist() == list(range(size // 8))
