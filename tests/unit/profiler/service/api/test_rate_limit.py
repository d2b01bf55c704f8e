"""Token buckets, and whose bucket a request empties."""

from __future__ import annotations

import pytest

from profiler.service.api.rate_limit import TokenBuckets, address_key
from profiler.service.api.settings import RateLimit


def test_a_bucket_empties_and_fills() -> None:
    now = [0.0]
    buckets = TokenBuckets(RateLimit(per_s=2, burst=3), lambda: now[0])
    assert [buckets.wait_s("a") for _ in range(4)] == [0, 0, 0, 0.5]
    now[0] = 0.25
    assert buckets.wait_s("a") == 0.25
    now[0] = 0.5
    assert [buckets.wait_s("a") for _ in range(2)] == [0, 0.5]
    now[0] = 1000
    assert [buckets.wait_s("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.wait_s("b") == 0


def test_a_flood_of_addresses_takes_bounded_memory() -> None:
    buckets = TokenBuckets(RateLimit(1, 1), lambda: 0.0, most=100)
    for number in range(10_000):
        buckets.wait_s(str(number))
    assert len(buckets) == 100


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:bbbb::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("a name", "a name"),
    ],
)
def test_addresses_of_one_host_are_one(address: str, key: str) -> None:
    assert address_key({"type": "http", "client": (address, 5)}) == key


def test_a_request_without_an_address_is_not_limited() -> None:
    assert address_key({"type": "http", "client": None}) == ""
