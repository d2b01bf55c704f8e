"""Whether a host is this machine itself: what is sent there crosses no network."""

from __future__ import annotations


def is_loopback(host: str) -> bool:
    """``host``: a name or an address, without a port and without brackets."""
    return host == "localhost" or is_loopback_address(host)


def is_loopback_address(host: str) -> bool:
    """False for names: where a request comes from is an address, or a text that anybody may have written."""
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
