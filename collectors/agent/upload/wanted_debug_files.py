"""Files with names that the aggregator lacks: only such as were mapped in captures of this agent, and are what they were."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from collectors.agent.agent_log import AgentLog
from collectors.agent.connection.server_connection import ServerConnection
from collectors.agent.spool.spool import Spool, used_bytes
from collectors.agent.upload.upload_queue import upload
from profiler.model.dso import Dso, DsoKind
from profiler.protocol.upload import UploadKind, UploadOffer
from profiler.store.debug_tree import debug_directory
from profiler.store.kept_files import remove_unneeded, unneeded_files
from symbolize.elf.identity import is_build
from symbolize.image_file import open_image
from symbolize.locate import Locator, SearchPaths

MOST_AT_ONCE = 1000
_BUILD_ID = re.compile(r"[0-9a-f]{8,128}")


@dataclass(slots=True)
class WantedDebugFiles:
    """``_settled``: build IDs that are wanted but need not be looked at again, because they are sent, refused or not to be
    found."""

    spool: Spool
    connection: ServerConnection
    log: AgentLog
    _settled: set[str] = field(default_factory=set)

    def send(self) -> None:
        """Files that were kept for captures go when these are with the aggregator and it wants nothing more of them.
        ``ServerTrouble``, ``StoreError``, ``OSError``."""
        done_with = unneeded_files(self.spool.store.directory)
        wanted = self.connection.wanted().build_ids
        asked = wanted[:MOST_AT_ONCE]
        # What is wanted no more is there, or of no use: it is forgotten, and sent again should it be wanted again.
        self._settled.intersection_update(asked)
        for build_id in asked:
            if build_id not in self._settled and _BUILD_ID.fullmatch(build_id):
                self._send(build_id)
                self._settled.add(build_id)
        if len(wanted) <= MOST_AT_ONCE:
            remove_unneeded(done_with)

    def _send(self, build_id: str) -> None:
        path = self.spool.tables.object_path(build_id)
        source = debug_file(path, build_id, debug_directory(self.spool.store.directory)) if path else None
        if source is not None:
            with source.open("rb") as plain:
                self._send_file(source, plain, build_id)

    def _send_file(self, source: Path, plain: IO[bytes], build_id: str) -> None:
        """Of what is open now: whoever may replace the file must not choose another one between the look and the reading."""
        image, _ = open_image(Path(f"/proc/self/fd/{plain.fileno()}"))
        if image is None or not is_build(image, bytes.fromhex(build_id)):
            return
        room = self.spool.limit_bytes - used_bytes(self.spool.directory)
        if os.fstat(plain.fileno()).st_size > room:
            self.log(f"{source}: no room in the spool for this debug file ({room} bytes)")
            return
        packed = self.spool.debug_directory / f"{build_id}.zst"
        try:
            digest = _compress(plain, packed)
            offer = UploadOffer(digest, packed.stat().st_size, UploadKind.DEBUG_FILE, build_id=build_id)
            refusal = upload(self.connection, offer, packed)
        finally:
            packed.unlink(missing_ok=True)
        self.log(f"{source}: refused by the server: {refusal}" if refusal else f"{source}: names uploaded, build ID {build_id}")


def debug_file(path: str, build_id: str, kept: Path) -> Path | None:
    """The file that has the names: the binary of that build ID with symbols, or its debug file; None when it is not here.
    ``kept``: directory of those that were kept of containers."""
    search = SearchPaths((kept, *SearchPaths().debug_directories))
    wanted = bytes.fromhex(build_id)
    for image in Locator(search).locate(Dso(path, wanted, DsoKind.FILE)).images:
        if is_build(image, wanted):
            return Path(image.name)
    return None


def _compress(plain: IO[bytes], target: Path) -> str:
    """SHA-256 of the compressed file, in hex."""
    import zstandard

    with target.open("wb") as packed:
        zstandard.ZstdCompressor(level=3).copy_stream(plain, packed)
    with target.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
