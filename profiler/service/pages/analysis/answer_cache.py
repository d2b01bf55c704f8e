"""Answers that were given before, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict

# One answer may take so much of the whole: else a single large one would drive out all others.
_LARGEST_PART = 4


class AnswerCache:
    """The answer that was not asked for longest goes first.  Not for several threads."""

    def __init__(self, room_bytes: int) -> None:
        self._room_bytes = room_bytes
        self._used_bytes = 0
        self._answers: OrderedDict[bytes, bytes] = OrderedDict()

    def get(self, key: bytes) -> bytes | None:
        if key not in self._answers:
            return None
        self._answers.move_to_end(key)
        return self._answers[key]

    def put(self, key: bytes, answer: bytes) -> None:
        """``key``: not there yet."""
        if len(answer) > self._room_bytes // _LARGEST_PART:
            return
        self._answers[key] = answer
        self._used_bytes += len(answer)
        while self._used_bytes > self._room_bytes:
            self._used_bytes -= len(self._answers.popitem(last=False)[1])
