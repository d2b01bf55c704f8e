"""Analyses for pages: each in a process of its own, few at once, the answers kept for whoever asks the same again."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from profiler.codec.json_values import to_json
from profiler.model.quick_dataclass import dataclass
from profiler.service.pages.analysis.analysis_order import TIME_LIMIT_S, AnalysisOrder
from profiler.service.pages.analysis.answer_cache import AnswerCache
from profiler.store.debug_tree import debug_directory

_WRONG_QUESTION = 2  # exit code of wrong usage


class AnalysisBusy(Exception):
    """As many analyses wait as may."""


class AnalysisTooLong(Exception):
    """The analysis was ended at its time limit."""


class AnalysisRefused(Exception):
    """The message says why there is no answer.  ``is_question_wrong``: else the data cannot give one."""

    def __init__(self, message: str, is_question_wrong: bool) -> None:
        super().__init__(message)
        self.is_question_wrong = is_question_wrong


@dataclass(frozen=True, slots=True)
class AnalysisLimits:
    """``at_once`` run, ``waiting`` more wait, each of them for ``seconds`` after it began; ``kept_bytes`` of answers."""

    at_once: int = 2
    waiting: int = 8
    seconds: float = TIME_LIMIT_S
    kept_bytes: int = 64 << 20


class Analyses:
    """Use it from one event loop."""

    def __init__(self, limits: AnalysisLimits) -> None:
        self._limits = limits
        self._kept = AnswerCache(limits.kept_bytes)
        self._in_work: dict[bytes, asyncio.Task[bytes]] = {}
        self._turns = asyncio.Semaphore(limits.at_once)

    async def answer(self, order: AnalysisOrder, captures: Sequence[str]) -> bytes:
        """``captures``: the blobs that the order is about, which tell an old answer from a new one.

        Raises ``AnalysisBusy``, ``AnalysisTooLong``, ``AnalysisRefused``.
        """
        key = await asyncio.to_thread(_key, order, captures)
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        task = self._in_work.get(key)
        if task is None:
            if len(self._in_work) >= self._limits.at_once + self._limits.waiting:
                raise AnalysisBusy
            task = asyncio.create_task(self._work_out(key, order))
            self._in_work[key] = task
            task.add_done_callback(lambda done: self._finished(key, done))
        # Whoever asked may go away; others may ask the same meanwhile.
        return await asyncio.shield(task)

    def _finished(self, key: bytes, task: asyncio.Task[bytes]) -> None:
        del self._in_work[key]
        if not task.cancelled():
            task.exception()  # nobody may be left to take it

    async def _work_out(self, key: bytes, order: AnalysisOrder) -> bytes:
        async with self._turns:
            answer = await _in_process(order, self._limits.seconds)
        self._kept.put(key, answer)
        return answer


def _key(order: AnalysisOrder, captures: Sequence[str]) -> bytes:
    """Of the order, the captures, and the debug files that there are: a new one gives names to what had none."""
    tree = debug_directory(Path(order.store))
    folders = [folder for folder in (tree, tree / ".build-id", *tree.glob(".build-id/*")) if folder.is_dir()]
    debug = [(str(folder), folder.stat().st_mtime_ns) for folder in sorted(folders)]
    return hashlib.sha256(json.dumps([to_json(order), list(captures), debug]).encode()).digest()


async def _in_process(order: AnalysisOrder, seconds: float) -> bytes:
    command = (sys.executable, "-m", "profiler.service.pages.analysis.analysis_process")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    try:
        written, said = await asyncio.wait_for(process.communicate(json.dumps(to_json(order)).encode()), seconds)
    except TimeoutError:
        raise AnalysisTooLong from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode == 0:
        return written
    if process.returncode == -signal.SIGALRM:
        raise AnalysisTooLong
    lines = said.decode("utf-8", "replace").strip().splitlines()
    if process.returncode not in (1, _WRONG_QUESTION) or len(lines) != 1:
        raise RuntimeError(f"the analysis ended with {process.returncode}: {' / '.join(lines[-3:])}")
    raise AnalysisRefused(lines[0], process.returncode == _WRONG_QUESTION)
