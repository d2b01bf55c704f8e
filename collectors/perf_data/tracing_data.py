"""Names of tracepoints, from the description of a kernel's trace events that recordings carry along.

Source: ``Documentation/trace-cmd.dat.v6.5.txt`` of trace-cmd, "INITIAL FORMAT" to "EVENT FORMATS", which perf shares.
"""

from __future__ import annotations

import re

from collectors.perf_data.features import FeatureContent, FeatureReader

_MAGIC = b"\x17\x08\x44tracing"
_HEADER_FILES = 2  # header_page and header_event
_FORMAT = re.compile(rb"^name: (?P<name>\S+)\nID: (?P<id>\d+)$", re.MULTILINE)


def tracepoint_names(content: FeatureContent, name: str) -> dict[int, str]:
    """ "system:event" by the number that a tracepoint's attribute has as config.  ``FormatError`` when it is cut short."""
    cursor = FeatureReader(content.data, name, content.offset)
    if not content.data.startswith(_MAGIC):
        return {}
    cursor.take(len(_MAGIC))
    cursor.terminated()  # version
    cursor.take(6)  # byte order, bytes of a long, bytes of a page
    for _ in range(_HEADER_FILES):
        cursor.terminated()
        cursor.take(cursor.u64())
    for _ in range(cursor.count(8)):  # events of the function tracer
        cursor.take(cursor.u64())
    names = {}
    for _ in range(cursor.count(5)):
        system = cursor.terminated()
        for _ in range(cursor.count(8)):
            event = _FORMAT.search(cursor.take(cursor.u64()))
            if event:
                names[int(event["id"])] = f"{system}:{event['name'].decode('utf-8', 'surrogateescape')}"
    return names
