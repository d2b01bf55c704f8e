"""An aggregator with pages in a process of its own, over a copy of the demonstration's store.

    python page_server.py DIRECTORY PORT-FILE [--behind-proxy]

The port is written to PORT-FILE once connections are taken; the process ends when its standard input does.
"""

from __future__ import annotations

import socket
import sys
import threading
from pathlib import Path

import uvicorn

from profiler.service.aggregator import open_aggregator
from profiler.service.api.app import make_app
from profiler.service.api.settings import ServiceSettings


def main() -> None:
    directory, port_file = Path(sys.argv[1]), Path(sys.argv[2])
    aggregator = open_aggregator(directory, create=True)
    app = make_app(aggregator, ServiceSettings(is_behind_proxy="--behind-proxy" in sys.argv))
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))

    def end_with_parent() -> None:
        sys.stdin.buffer.read()
        server.should_exit = True

    threading.Thread(target=end_with_parent, daemon=True).start()
    port_file.with_suffix(".new").write_text(str(listening.getsockname()[1]))
    port_file.with_suffix(".new").rename(port_file)
    server.run(sockets=[listening])


main()
