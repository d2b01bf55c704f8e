"""Captures and files on their way to the aggregator: offered, sent from where it stands, committed, and only then gone."""

from __future__ import annotations

from pathlib import Path

from collectors.agent.agent_log import AgentLog
from collectors.agent.connection.server_connection import ServerConnection
from collectors.agent.connection.server_errors import RequestRefused, ServerTrouble
from collectors.agent.spool.spool import Spool
from collectors.agent.spool.spool_tables import SpooledCapture
from profiler.model.quick_dataclass import dataclass
from profiler.protocol.upload import LARGEST_CHUNK_BYTES, UploadKind, UploadOffer, UploadState

# How often one pass takes up an upload whose offset the server sees otherwise.
_MOST_OFFERS = 5


def upload(connection: ServerConnection, offer: UploadOffer, path: Path) -> str:
    """Why the content is refused for good, "" = the aggregator has it.  ``ServerTrouble``: to be tried again later."""
    for _ in range(_MOST_OFFERS):
        try:
            state = _checked(connection.offer(offer), offer)
            if state.is_committed or _is_sent(connection, offer, path, state):
                return "" if state.is_committed else connection.commit(offer.sha256).refusal
        except RequestRefused as error:
            if error.is_final:
                return str(error)
            if error.status != 409:
                raise
    raise ServerTrouble(f"upload {offer.sha256[:12]} does not go on: the server wants other parts of it again and again")


def _is_sent(connection: ServerConnection, offer: UploadOffer, path: Path, state: UploadState) -> bool:
    """False when the server has another part than it was sent."""
    offset = state.received_bytes
    with path.open("rb") as stream:
        stream.seek(offset)
        while chunk := stream.read(LARGEST_CHUNK_BYTES):
            answer = _checked(connection.send(offer.sha256, offset, chunk), offer)
            offset += len(chunk)
            if answer.received_bytes != offset:
                return False
    return True


def _checked(state: UploadState, offer: UploadOffer) -> UploadState:
    if state.sha256 != offer.sha256 or not 0 <= state.received_bytes <= offer.size_bytes:
        raise ServerTrouble(f"the server's answer about upload {offer.sha256[:12]} makes no sense")
    return state


@dataclass(frozen=True, slots=True)
class UploadQueue:
    """Captures of the spool, in the order in which they were finished."""

    spool: Spool
    connection: ServerConnection
    log: AgentLog

    def send_waiting(self) -> int:
        """How many were dealt with.  ``ServerTrouble`` at the first that does not get through; one that the server does not
        want now lets the others pass, and is raised in the end."""
        dealt_with = 0
        put_off: RequestRefused | None = None
        for capture in self.spool.waiting():
            try:
                self._send(capture)
                dealt_with += 1
            except RequestRefused as error:
                put_off = error
        if put_off is not None:
            raise put_off
        return dealt_with

    def _send(self, capture: SpooledCapture) -> None:
        offer = UploadOffer(capture.sha256, capture.size_bytes, UploadKind.CAPTURE, job=capture.job)
        path = self.spool.path_of(capture)
        try:
            refusal = upload(self.connection, offer, path)
        except FileNotFoundError:
            self.spool.refused(capture)
            self.log(f"job {capture.job}: capture {capture.sha256[:12]} is lost: {path} was removed before it was uploaded")
            return
        if refusal:
            self.spool.refused(capture)
            aside = self.spool.directory / "refused"
            self.log(f"job {capture.job}: the server refuses capture {capture.sha256[:12]}, kept in {aside}: {refusal}")
        else:
            self.spool.committed(capture)
            self.log(f"job {capture.job}: capture {capture.sha256[:12]} uploaded, {capture.size_bytes} bytes")
