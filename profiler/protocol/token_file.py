"""The file in which somebody keeps the token that an aggregator made: one rule for agents and for people."""

from __future__ import annotations

import os
import re
import shlex
import stat
from pathlib import Path

from profiler.errors import UsageError

LARGEST_TOKEN_BYTES = 4096
_TOKEN = re.compile(r"[A-Za-z0-9_.~+/=-]{16,1024}")


def read_token(path: Path) -> str:
    """What `slotscope token create` printed.  ``UsageError``, one line that never shows what stands in it: no file, none that
    can be read, one that others may read, no token."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):  # a pipe would be waited for
            raise UsageError(f"{path}: no token can be read from it (it is not a file)")
        with path.open("rb") as stream:
            data = stream.read(LARGEST_TOKEN_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: no token can be read from it ({error.strerror})") from None
    # With an access list, as systemd gives its service's user, the group's bits are the most that anybody on the list may do.
    is_credential = str(path.parent) == os.environ.get("CREDENTIALS_DIRECTORY")
    if mode & (stat.S_IRWXO if is_credential else stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(
            f"{path}: others may read the token (mode {stat.S_IMODE(mode):o}): `chmod 600 {shlex.quote(str(path))}`"
        )
    token = data.decode("ascii", "replace").strip()
    if len(data) > LARGEST_TOKEN_BYTES or not _TOKEN.fullmatch(token):
        raise UsageError(f"{path}: holds no token; `slotscope token create` on the server makes one")
    return token
