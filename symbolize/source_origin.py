"""The crate or directory that a source file belongs to: what stands in for a namespace when line tables are all there is."""

from __future__ import annotations

import re

_VERSION = re.compile(r"-\d+\.\d+.*$")
_CHECKOUT = re.compile(r"/git/checkouts/([^/]+?)-[0-9a-f]{8,}/[0-9a-f]{7,}/")
_CXX_LIBRARY = re.compile(r"/(?:c\+\+/(?:v?\d+)|libstdc\+\+-v3|libcxx)/")


def source_origin(path: str) -> str:
    """``core`` for ``/rustc/…/library/core/src/str/mod.rs``, ``sha2`` for ``…/sha2-0.10.8/src/sha256.rs``, ``std`` for headers
    of the C++ library, the last directory's name otherwise; "" for a path without directory."""
    if _CXX_LIBRARY.search(path):
        return "std"
    directories = path.split("/")[:-1]
    if path.endswith(".rs") and "src" in directories:
        before = len(directories) - 1 - directories[::-1].index("src")
        if before > 0 and directories[before - 1]:
            return _crate(path, directories[before - 1])
    return next((name for name in reversed(directories) if name not in ("", ".", "..")), "")


def _crate(path: str, directory: str) -> str:
    checkout = _CHECKOUT.search(path)
    if checkout is not None and re.fullmatch(r"[0-9a-f]{7,}", directory):
        directory = checkout[1]  # the crate is the repository itself; its directory is a revision
    return _VERSION.sub("", directory).replace("-", "_")
