"""A TCP proxy that forwards badly: later, in part, or not at all.  Run as a program, it is told on standard input how.

    python faulty_proxy.py LISTEN_ADDRESS:PORT TARGET_ADDRESS:PORT

Commands, one a line: ``pass``; ``delay SECONDS`` (each piece, either way); ``cut BYTES`` (a connection is reset after so many
bytes from the client); ``hold`` (connections stay open and nothing passes: a partition nobody is told of).  Each is answered
with ``ok``.  Ends at the end of its input.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from dataclasses import dataclass, field

PIECE_BYTES = 16 << 10


@dataclass(slots=True)
class Faults:
    delay_s: float = 0.0
    cut_bytes: int = 0
    passes: asyncio.Event = field(default_factory=asyncio.Event)

    def obey(self, line: str) -> None:
        word, _, value = line.strip().partition(" ")
        self.delay_s = float(value) if word == "delay" else 0.0
        self.cut_bytes = int(value) if word == "cut" else 0
        if word == "hold":
            self.passes.clear()
        elif word in ("pass", "delay", "cut"):
            self.passes.set()
        else:
            raise ValueError(line)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, faults: Faults, may_cut: bool) -> None:
    forwarded = 0
    while data := await reader.read(PIECE_BYTES):
        if faults.delay_s:
            await asyncio.sleep(faults.delay_s)
        await faults.passes.wait()
        if may_cut and faults.cut_bytes and forwarded + len(data) > faults.cut_bytes:
            writer.write(data[: faults.cut_bytes - forwarded])
            await writer.drain()
            raise ConnectionResetError
        writer.write(data)
        await writer.drain()
        forwarded += len(data)
    with contextlib.suppress(OSError):
        writer.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Closes so that the other side sees a reset, not an orderly end."""
    connection = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _serve(listen: tuple[str, int], target: tuple[str, int]) -> None:
    faults = Faults()
    faults.passes.set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await faults.passes.wait()
        try:
            there_reader, there_writer = await asyncio.open_connection(*target)
        except OSError:
            _reset(writer)
            return
        try:
            await asyncio.gather(
                _pump(reader, there_writer, faults, may_cut=True), _pump(there_reader, writer, faults, may_cut=False)
            )
        except (OSError, asyncio.CancelledError):
            pass  # either side went away, and so does the other; or the proxy itself ends
        finally:
            _reset(writer)
            _reset(there_writer)

    server = await asyncio.start_server(connected, *listen)
    print("ok", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        faults.obey(line)
        print("ok", flush=True)
    server.close()


def _place(text: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    return address, int(port)


if __name__ == "__main__":
    asyncio.run(_serve(_place(sys.argv[1]), _place(sys.argv[2])))
