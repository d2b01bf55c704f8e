"""Callchains word by word, as ``include/uapi/linux/perf_event.h`` describes them, against the columns made of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.ingest.callchains import chain_addresses
from collectors.perf_data.sample_fields import decode_samples
from collectors.perf_data.sample_layout import SampleLayout

HEADER_SAMPLE, CALLCHAIN = 9, 1 << 5
KERNEL, USER, DEFERRED, GUEST = 2**64 - 128, 2**64 - 512, 2**64 - 640, 2**64 - 2048
MODE_USER, MODE_KERNEL, MODE_GUEST = 0, 1, 2
ADDRESSES = st.sampled_from([0x1000, 0x2001, 0x7FFF_FFFF_F000, 2**64 - 2**31, 2**64 - 4096])
WORDS = st.one_of(ADDRESSES, st.sampled_from([KERNEL, USER, DEFERRED, GUEST]))
CHAINS = st.lists(st.lists(WORDS, max_size=8), max_size=6)


def words_of(chains: list[list[int]], stack_words: int) -> tuple[list[int], list[int]]:
    """(words, starts of the records); behind every chain a dump of so many words that look like markers."""
    words: list[int] = []
    starts = []
    for chain in chains:
        body = [len(chain), *chain, *([8 * stack_words, *([USER] * stack_words), 8 * stack_words] if stack_words else [])]
        starts.append(len(words))
        words += [HEADER_SAMPLE | 8 * (len(body) + 1) << 48, *body]
    return words, starts


def expected(chain: list[int]) -> list[tuple[int, bool, int | None]]:
    """(address, is it a return address, mode by the marker before it or ``None`` without one), outermost first."""
    found: list[tuple[int, bool, int | None]] = []
    mode: int | None = None
    is_exact, skips = True, False
    for word in chain:
        if word >= 2**64 - 4095:
            mode = {KERNEL: MODE_KERNEL, GUEST: MODE_GUEST}.get(word, MODE_USER)
            is_exact, skips = word != DEFERRED, word == DEFERRED
        elif skips:
            skips = False
        else:
            found.append((word, not is_exact, mode))
            is_exact = False
    return found[::-1]


@pytest.mark.parametrize("stack_words", [0, 200])
@pytest.mark.parametrize("is_kernel_high", [True, False])
@given(chains=CHAINS)
def test_chains(stack_words: int, is_kernel_high: bool, chains: list[list[int]]) -> None:
    sample_type = CALLCHAIN | (1 << 13 if stack_words else 0)
    words, starts = words_of(chains, stack_words)
    fields = decode_samples(np.array(words, np.uint64), np.array(starts, np.int64), SampleLayout(sample_type, 0, 0, 0, 0))
    assert not fields.is_damaged.any()
    lists = chain_addresses(fields, is_kernel_high)
    wanted = [expected(chain) for chain in chains]
    assert np.diff(lists.start).tolist() == [len(chain) for chain in wanted]
    flat = [entry for chain in wanted for entry in chain]
    assert lists.addresses.tolist() == [address for address, _, _ in flat]
    assert lists.is_return_address.tolist() == [is_return for _, is_return, _ in flat]
    if lists.mode is None:
        assert is_kernel_high
        assert not any(word == GUEST for chain in chains for word in chain)
    else:
        by_half = [MODE_KERNEL if address >= 2**63 else MODE_USER for address, _, _ in flat]
        modes = [half if mode is None else mode for (_, _, mode), half in zip(flat, by_half, strict=True)]
        assert lists.mode.tolist() == modes
