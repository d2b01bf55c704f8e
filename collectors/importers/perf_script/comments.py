"""What `perf script --header` says of the recording, in lines that begin with "#"."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace

from collectors.ingest.capture_facts import recorded_command
from profiler.model.run import CaptureInfo, HostFacts, PerfSettings

_WANTED = frozenset({"hostname", "os release", "perf version", "arch", "nrcpus online", "cpudesc", "cmdline"})
_CALL_GRAPHS = ("dwarf", "lbr", "fp")


@dataclass(slots=True)
class HeaderComments:
    """Facts by perf's names for them; the first file of several that were joined speaks."""

    facts: dict[str, str] = field(default_factory=dict)

    def add(self, line: str) -> None:
        """Keeps what the comment says when it is one of the facts of interest."""
        name, colon, value = line.lstrip("# ").partition(":")
        if colon and name.strip() in _WANTED:
            self.facts.setdefault(name.strip(), value.strip())

    def completed(self, info: CaptureInfo, event: str, has_inlines: bool, has_callers: bool) -> CaptureInfo:
        """``info`` with host, perf settings and command where it has none.  Without a command line, inlined frames tell that
        stacks were unwound by DWARF: perf expands no others."""
        command_line = _arguments(self.facts.get("cmdline", ""))
        call_graph = _call_graph(command_line) or ("dwarf" if has_inlines else "fp" if has_callers else "none")
        perf = PerfSettings(
            event=event,
            call_graph=call_graph,
            perf_version=self.facts.get("perf version", ""),
            perf_command=command_line,
        )
        host = HostFacts(
            hostname=self.facts.get("hostname", ""),
            kernel=self.facts.get("os release", ""),
            architecture=self.facts.get("arch", ""),
            cpu=self.facts.get("cpudesc", ""),
            cpu_count=_count(self.facts.get("nrcpus online", "")),
        )
        return replace(
            info,
            host=info.host if info.host != HostFacts() else host,
            perf=info.perf if info.perf != PerfSettings() else perf,
            command=info.command or recorded_command(command_line),
        )


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0


def _arguments(command_line: str) -> tuple[str, ...]:
    """perf joins its arguments with blanks and quotes nothing."""
    try:
        return tuple(shlex.split(command_line))
    except ValueError:
        return tuple(command_line.split())


def _call_graph(arguments: tuple[str, ...]) -> str:
    for position, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if name == "--call-graph":
            value = value or (arguments[position + 1] if position + 1 < len(arguments) else "")
            return next((kind for kind in _CALL_GRAPHS if value.startswith(kind)), "fp")
    return "fp" if "-g" in arguments else ""
