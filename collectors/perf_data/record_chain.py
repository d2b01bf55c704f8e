"""Where the records of a window begin: each header holds the size of its record, so one leads to the next.

Nothing in numpy follows such a chain, and Python takes about 100 ns for a link.  But many chains can be followed at once: the
window is cut into blocks, and in each of them something that looks like a record is taken for one.  The chain of a block is
right if that of the block before ends exactly where it begins; from the first one that is not on, all is done link by link.
"""

from __future__ import annotations

import numpy as np

from collectors.perf_data import spec
from profiler.model.arrays import BoolColumn, Int64Column, UInt64Column

# So much is read link by link in any case; it tells how long records are.
_FIRST_BYTES = 1 << 19
# Of one block, roughly.  A step costs the same for few blocks as for many.
_BLOCK_RECORDS = 256
_FEWEST_BLOCKS = 8
# With longer records, such as stack dumps, there are few of them, and many blocks without a beginning.
_LONG_WORDS = 256
# A block's first record is looked for within so many records' length; as many links behind it have to look like records too.
_SEARCHED_RECORDS = 2
_PROVING_LINKS = 4
# A step of the last few chains takes as long as fifty links of plain Python: chains longer than this are not followed.
_MOST_LINKS = 8 * _BLOCK_RECORDS

# The kernel's types are below 64, those that perf adds follow.
_PLAUSIBLE_TYPES = np.uint64(128)
_TYPE_MASK = np.uint64(0xFFFFFFFF)
_SIZE_BITS = np.uint64(48)  # a header's last two bytes
_SIZE_WORD_BITS = np.uint64(51)
_NOTHING = np.zeros(0, np.int64)


def record_starts(window: memoryview) -> Int64Column:
    """The records of a window that begins with one: where each begins, in words of 8 bytes.

    The last may reach beyond the end.  What comes behind a record whose size is no number of words means nothing.
    """
    words = np.frombuffer(window, "<u8", len(window) // 8)
    halves = window[: 8 * len(words)].cast("H")
    first = _link_by_link(halves[: _FIRST_BYTES // 2])
    sizes = (words[first] >> _SIZE_WORD_BITS).view(np.int64)
    following = int(first[-1] + sizes[-1]) if len(first) else 0
    further = _NOTHING
    if len(first) and sizes[-1] and sizes.max() < _LONG_WORDS:
        further, following = _block_by_block(words, following, following // len(first))
    return np.concatenate([first, further, _link_by_link(halves[4 * following :]) + following])


def _link_by_link(halves: memoryview) -> Int64Column:
    """As ``record_starts``.  Plain Python: one look-up per record is what the chain of sizes needs."""
    position, end = 3, len(halves)  # the size is the last of a header's four
    starts: list[int] = []
    add = starts.append
    try:
        while True:  # ended by the look-up itself, which has to check the position anyway
            size = halves[position]
            add(position)
            position += size >> 3 << 2 or end
    except IndexError:
        pass
    return np.array(starts, np.int64) >> 2


def _block_by_block(words: UInt64Column, begin: int, mean_words: int) -> tuple[Int64Column, int]:
    """The records from the one at ``begin`` on, as far as blocks fit to each other, and the place behind them."""
    blocks = np.arange(begin, len(words), max(mean_words, 1) * _BLOCK_RECORDS)
    if len(blocks) < _FEWEST_BLOCKS:
        return _NOTHING, begin
    first = np.append(begin, _first_records(words, blocks[1:], _SEARCHED_RECORDS * mean_words))
    starts, end = _chains(words, first)
    is_wrong = np.append(end[:-1] != first[1:], True)
    last = int(is_wrong.argmax())
    # Right chains follow one another in the window.
    right = starts if last == len(first) - 1 else starts[starts < first[last + 1]]
    return np.sort(right), int(end[last])


def _first_records(words: UInt64Column, blocks: Int64Column, searched: int) -> Int64Column:
    """What looks like the first record of each block; nothing for a block in which nothing does."""
    place = (blocks[:, None] + np.arange(searched)).reshape(-1)
    candidates = np.arange(len(place))
    for _ in range(_PROVING_LINKS):
        is_inside = place < len(words)
        candidates, place = candidates[is_inside], place[is_inside]
        header = words[place]
        is_plausible = _looks_like_header(header)
        candidates = candidates[is_plausible]
        place = place[is_plausible] + (header[is_plausible] >> _SIZE_WORD_BITS).view(np.int64)
    block, index = np.unique(candidates // searched, return_index=True)
    return blocks[block] + candidates[index] % searched


def _looks_like_header(words: UInt64Column) -> BoolColumn:
    """Types of later kernels are taken for some as well: a block without a beginning costs time."""
    kind, size = words & _TYPE_MASK, words >> _SIZE_BITS
    plausible: BoolColumn = (size & np.uint64(7) == 0) & (size >= np.uint64(spec.RECORD_HEADER_BYTES))
    plausible &= (kind > 0) & (kind < _PLAUSIBLE_TYPES)
    return plausible


def _chains(words: UInt64Column, first: Int64Column) -> tuple[Int64Column, Int64Column]:
    """(the links of all chains in no order, the end of each chain: its first link not before the next chain's first, or what is
    behind a record without a size, or the first link that was not followed)."""
    limit, end = np.append(first[1:], len(words)), np.empty(len(first), np.int64)
    chain, place = np.arange(len(first)), first
    steps: list[Int64Column] = []
    while len(chain) and len(steps) < _MOST_LINKS:
        steps.append(place)
        size = (words[place] >> _SIZE_WORD_BITS).view(np.int64)
        # A record without a size leads nowhere; what is behind it, such as zeros to the end, will not be looked at.
        place = place + np.maximum(size, 1)
        has_ended = (place >= limit) | (size == 0)
        if has_ended.any():
            end[chain[has_ended]] = place[has_ended]
            going_on = np.flatnonzero(~has_ended)
            chain, place, limit = chain[going_on], place[going_on], limit[going_on]
    end[chain] = place
    return np.concatenate(steps), end
