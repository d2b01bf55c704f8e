"""Downloads of binaries and debug files by build ID from debuginfod servers (debuginfod(8)).

Nothing is asked unless servers are configured.  Files are kept where debuginfod's own client keeps its, so each is fetched
once per machine.  A server that does not answer is not asked again, and all downloads together have a time limit.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from symbolize.elf.image import ElfImage
from symbolize.image_file import open_image

ANSWER_SECONDS = 10.0
TOTAL_SECONDS = 90.0
LARGEST_BYTES = 4 << 30
_CHUNK_BYTES = 1 << 20


def configured_servers() -> tuple[str, ...]:
    """The servers that the user named in $DEBUGINFOD_URLS, separated by blanks."""
    return tuple(url for url in os.environ.get("DEBUGINFOD_URLS", "").split() if url.startswith(("http://", "https://")))


def cache_directory() -> Path:
    """$DEBUGINFOD_CACHE_PATH, by default $XDG_CACHE_HOME/debuginfod_client."""
    named = os.environ.get("DEBUGINFOD_CACHE_PATH", "")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "debuginfod_client"


class Debuginfod:
    """``clock``: seconds, monotonic.  Never raises: what cannot be had is absent."""

    def __init__(self, servers: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._servers = [server.rstrip("/") for server in servers]
        self._clock = clock
        self._seconds_left = TOTAL_SECONDS

    def find(self, build_id: bytes, kind: str) -> ElfImage | None:
        """The file of a build ID, whose own build ID has been checked; ``kind``: "executable" or "debuginfo"."""
        if not self._servers or len(build_id) < 2:
            return None
        path = cache_directory() / build_id.hex() / kind
        if not path.is_file() and not self._download(f"buildid/{build_id.hex()}/{kind}", path):
            return None
        image, _ = open_image(path)
        return image if image is not None and image.build_id == build_id else None

    def _download(self, name: str, path: Path) -> bool:
        for server in tuple(self._servers):
            if self._seconds_left <= 0:
                return False
            started = self._clock()
            try:
                if self._fetch(f"{server}/{name}", path, started + self._seconds_left):
                    return True
            except (OSError, ValueError):  # no connection, no answer in time, damaged answer
                self._servers.remove(server)
            finally:
                self._seconds_left -= self._clock() - started
        return False

    def _fetch(self, url: str, path: Path, deadline: float) -> bool:
        """Whether the server had the file.  OSError when it does not answer in time or the file cannot be written."""
        import urllib.error
        import urllib.request
        from http.client import HTTPException

        temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}.tmp")
        try:
            with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:
                path.parent.mkdir(parents=True, exist_ok=True)
                with temporary.open("xb") as stream:
                    size = 0
                    while chunk := answer.read(_CHUNK_BYTES):
                        size += stream.write(chunk)
                        if size > LARGEST_BYTES or self._clock() > deadline:
                            raise TimeoutError
            os.replace(temporary, path)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return False
            raise
        except HTTPException as error:
            raise OSError(str(error)) from None
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        return True
