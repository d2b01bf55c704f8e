"""Inputs of every kind without a fault, and how each of them is damaged and used."""

from __future__ import annotations

import gzip
import lzma
import os
import platform
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

import zstandard
from fuzz import mutations, programs
from fuzz.mutations import Mutation
from fuzz.sandbox import Limits, limited

from support import container_writer as containers
from support import perf_data_writer as writer
from support.perf_data_writer import EventSpec, RecordingWriter, Sample

PROGRAM_AT = 0x555500000000
STACK_AT = 0x7FFD00000000
DUMP_BYTES = 512
USER_REGISTERS = 0xFF0FFF
PID = 10


@dataclass(frozen=True)
class GoodInput:
    """``files``: by name; ``targets``: those of them that are damaged, one at a time.  ``commands``: of slotscope, of which one
    is used at a time.  ``wrap``: what is done to the damaged file afterwards.  ``finish``: called in the case's directory."""

    files: Mapping[str, bytes]
    targets: Sequence[str]
    mutation: Mutation
    commands: Sequence[Sequence[str]]
    wrap: Callable[[bytes], bytes] = bytes
    finish: Callable[[Path], None] = field(default=lambda _: None)


def reading(file: str, *options: str) -> tuple[tuple[str, ...], ...]:
    """Every way in which a recording is read."""
    reports = [("report", file, "--format", "json", "--by", by) for by in ("category", "function", "line", "dso", "thread")]
    exports = [("export", file, "-o", "-", "--format", form) for form in ("folded", "speedscope")]
    others = [("report", file), ("explain", file, "--function", "."), ("report", file, "--view", "owner", "--phase", "main")]
    return tuple((*command, *options) for command in (*reports, *exports, *others))


def _code(program: bytes) -> list[int]:
    """Runtime addresses all over the executable segment."""
    _, size, offset = _executable(program)
    return [PROGRAM_AT + offset + at for at in range(0, size, max(1, size // 120))]


def _executable(program: bytes) -> tuple[int, int, int]:
    """(link address, bytes, file offset) of the executable segment."""
    at, count = struct.unpack_from("<Q", program, 32)[0], struct.unpack_from("<H", program, 56)[0]
    for row in range(count):
        kind, flags, offset, link_address, _, size = struct.unpack_from("<IIQQQQ", program, at + 56 * row)
        if kind == 1 and flags & 1:
            return link_address, size, offset
    raise ValueError("no executable segment")


def _map_program(content: RecordingWriter, program: bytes, path: bytes, build_id: bytes = b"") -> None:
    _, size, offset = _executable(program)
    length = size + 0xFFF & ~0xFFF
    content.mmap2(PID, PROGRAM_AT + offset, length, offset, path, build_id=build_id)


def program_recording(program: bytes, build_id: bytes = b"") -> bytes:
    """Frame pointer stacks of an event, and stack dumps of another one."""
    dumps = writer.USUAL | writer.REGS_USER | writer.STACK_USER
    events = [EventSpec(), EventSpec(dumps, user_registers=USER_REGISTERS, user_stack=DUMP_BYTES)]
    content = RecordingWriter(events)
    content.comm(PID, PID, b"program", is_exec=True)
    _map_program(content, program, b"/gone/program", build_id)
    code, rng = _code(program), Random(1)
    for row, ip in enumerate(code):
        chain = (writer.USER_MARKER, ip, *rng.sample(code, 3))
        content.sample(Sample(ip=ip, time=1000 * row, chain=chain))
        if row % 4 == 0:
            registers = [STACK_AT + 8 * rng.randrange(8) for _ in range(20)]
            registers[8] = ip
            dump = b"".join(writer.words(rng.choice((rng.choice(code), STACK_AT + 64, 0, row))) for _ in range(DUMP_BYTES // 8))
            sample = Sample(ip=ip, time=1000 * row + 1, chain=(), registers=registers, stack=dump, dynamic_size=DUMP_BYTES)
            content.sample(sample, event=1)
    return content.build()


def _rich_recording() -> RecordingWriter:
    """Every record type and sample field that is decoded."""
    many = writer.USUAL | writer.ADDR | writer.READ | writer.RAW | writer.BRANCH_STACK | writer.REGS_USER | writer.STACK_USER
    late = writer.WEIGHT_STRUCT | writer.DATA_SRC | writer.TRANSACTION | writer.REGS_INTR | writer.PHYS_ADDR | writer.CGROUP
    dumps = EventSpec(
        many | late, 0b1111, user_registers=USER_REGISTERS, user_stack=64, interrupt_registers=0b111, branch_sample_type=1 << 17
    )
    features = {
        2: writer.build_id_entry(b"/gone/program", bytes(range(20))), 3: writer.feature_string("host"),
        4: writer.feature_string("6.1.0"), 5: writer.feature_string("6.1"), 6: writer.feature_string("x86_64"),
        7: struct.pack("<II", 2, 2), 11: writer.feature_strings(["perf", "record", "-g", "program"]),
        27: bytes(20),
    }  # fmt: skip
    content = RecordingWriter([EventSpec(), EventSpec(config=2, read_format=0b1100), dumps], features)
    content.comm(PID, PID, b"program", is_exec=True)
    content.mmap(-1, 0xFFFFFFFF81000000, 0x1000000, 0xFFFFFFFF81000000, b"[kernel.kallsyms]_text", misc=1)
    content.mmap(-1, 0xFFFFFFFFC0000000, 0x10000, 0, b"/lib/modules/6.1.0/kernel/fs/xfs.ko", misc=1)
    content.mmap2(PID, 0x400000, 0x2000, 0, b"/gone/program")
    content.mmap2(PID, 0x7F0000000000, 0x9000, 0x1000, b"/gone/lib.so", build_id=bytes(range(20)))
    content.mmap2_without_protection(PID, 0x7F0000100000, 0x9000, 0x1000, b"//anon")
    content.kernel_symbol(0xFFFFFFFFC0005000, 64, b"bpf_prog_1")
    content.fork(11, 11, PID, PID, 5)
    content.fork(PID, 12, PID, PID, 6)
    content.comm(11, 11, b"child \xff;(", 7)
    content.mmap2(11, 0x401000, 0x1000, 0, b"/tmp/new (deleted)", 8)
    for row in range(30):
        chain = (
            writer.KERNEL_MARKER,
            0xFFFFFFFF81000100,
            0xFFFFFFFFC0005010,
            writer.USER_MARKER,
            0x400010 + row,
            0x7F0000000100,
        )
        where = Sample(
            ip=0x400010 + row, pid=10 + row % 2, tid=(10, 11, 12)[row % 3], time=10 + row, chain=chain, raw=b"\4\0\0\0abcd"
        )
        content.sample(where, event=0)
        if row % 5 == 0:
            content.sample(_full_sample(row), event=2)
    content.lost(3)
    content.lost_samples(4)
    content.throttle()
    content.exit(11, 11, 60)
    content.finished_round()
    return content


def _full_sample(row: int) -> Sample:
    return Sample(
        ip=0x400010, time=20 + row, chain=(writer.USER_MARKER, 0x400010), read=(7, 100, 90, 100), raw=b"\4\0\0\0abcd",
        branches=((0x400010, 0x400020, 0), (0x400030, 0x400040, 1)), registers=[1] * 20, stack=bytes(64), dynamic_size=64,
        interrupt_registers=[1, 2, 3],
    )  # fmt: skip


def _compressed(content: RecordingWriter, kind: int) -> RecordingWriter:
    pieces = containers.zstd_pieces(b"".join(content.records[2:]), [100, 300, 57])
    packed = [*content.records[:2], *(containers.compressed_record(piece, kind) for piece in pieces)]
    return RecordingWriter(content.events, content.features, packed)


def _one_file(content: bytes, mutation: Mutation = mutations.perf_data, wrap: Callable[[bytes], bytes] = bytes) -> GoodInput:
    return GoodInput({"x.data": content}, ["x.data"], mutation, reading("x.data"), wrap)


def _directory() -> GoodInput:
    content = _rich_recording()
    main = RecordingWriter(content.events, {**content.features, 24: writer.words(1)}, content.records[:12])
    files = {"d/data": main.build(), "d/data.0": b"".join(content.records[12:30]), "d/data.1": b"".join(content.records[30:])}
    return GoodInput(files, list(files), _directory_part, reading("d"))


def _directory_part(rng: Random, data: bytes) -> bytes:
    if data[:8] == mutations.PERF_MAGIC:
        return mutations.perf_data(rng, data)
    return mutations.records(rng, data, 0, len(data))


def _program(form: str) -> GoodInput | None:
    files = programs.built(form)
    if not files:
        return None
    recording = program_recording(files["program"])
    beside = {"x.data": recording, **{f"bin/{name}": content for name, content in files.items()}}
    targets = [name for name in beside if name != "x.data"]
    if len(targets) > 1:
        # What is special about these is in the other files.
        targets = [name for name in targets if name != "bin/program"] * 2 + ["bin/program"]
    return GoodInput(beside, targets, mutations.elf, reading("x.data", "--debug-dir", "bin"))


def _program_stacks() -> GoodInput | None:
    files = programs.built("dwarf5")
    if not files:
        return None
    beside = {"x.data": program_recording(files["program"]), "bin/program": files["program"]}
    return GoodInput(beside, ["x.data"], mutations.perf_data, reading("x.data", "--debug-dir", "bin"))


PERF_SCRIPT = b"""# hostname : host
# cmdline : /usr/bin/perf record -g ./program
program 10/10 [000] 1.000001: 1000 cpu-clock:u:
\t          400010 shapes::total(int)+0x10 (/gone/program)
\t          400020 operator()(int)+0x1 (/gone/my dir (x)/lib.so (deleted))
\tffffffff81000100 do_syscall_64+0x7 ([kernel.kallsyms])

a b [c] 12 10/11 [001] 1.000002: 1000 cpu-clock:u:
\t          400030 inner (inlined)
\t          400030 main+0x5 (/gone/program)
  first.cpp:12

:7: /9 12 1.000003: cycles:  400040 alone+0x1 (/gone/program)
"""
FOLDED = b"main;work;leaf 10\nmain;work;other [k] 5\n# comment\nmain;a b(c;d) 0.25\n[unknown];x 3\n"
RULES = b"""# rules
[[rule]]
category = "hashing"
group = "crypto"
function = "^sha|leaf"
dso = "program"
passthrough = true

[[rule]]
transparent = true
file = ['^/usr/', '\\\\.h$']

[[rule]]
category = "from {dso}"
under = "^main$"
fallback = true
"""
_RULE_WORDS = (
    "[[rule]]", "extends = [\"native\"]", "(a+)+$", "(a|a)*b", "(?P<x>a)(?P=x)", "(?<=a*)b", "\\\\p{L}", "(" * 300, "[a-",
    "{3,99999}",
    "category = 1", "'''", '"""', "= []", "[rule]", "(?i:x)", "(x{1000}){1000}", "= true", "{nowhere}",
)  # fmt: skip
_SCRIPT_WORDS = (
    "10/10", "[000]", "1.000001:", "cpu-clock:u:", "(inlined)", "([unknown])", "+0x", "(/gone/program)", "\t          400010 ",
    "# ",
    "PERF_RECORD_COMM", "branch-misses:", "99999999999999999999/1",
)  # fmt: skip
PYSPY_RAW = b"""process 71:"/v/bin/python prog.py";thread (71): MainThread;<module> (p.py:31);work (p.py:25);one (p.py:17) 5
process 71:"/v/bin/python prog.py";thread (75): worker;Thread.run (threading.py:982);work (prog.py:24);three (prog.py:11) 7
thread (76): native;0x7f0b6cf278ec (libc.so.6);thread_run (libpython3.11.so.1.0);work (prog.py:24) 2
"""
PYSPY_SPEEDSCOPE = b"""{"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": [{"type": "sampled",
"name": "Process 71 Thread 71 \\"MainThread\\"", "unit": "seconds", "startValue": 0.0, "endValue": 0.04,
"samples": [[0, 1, 2], [2]], "weights": [0.02, 0.02]}],
"shared": {"frames": [{"name": "thread (71): MainThread", "file": "", "line": 0, "col": null},
{"name": "<module>", "file": "/srv/prog.py", "line": 31, "col": null}, {"name": "work", "file": "/srv/prog.py", "line": 9}]},
"activeProfileIndex": null, "exporter": "py-spy@0.4.3", "name": "py-spy profile"}
"""
PLAN = b"""[experiment]
name = "two"
design = "interleaved"
runs = 5
warmup = 1
seed = 7
baseline = "base"
phase = "^main$"
margin = 2
timeout = "5 min"
command = ["{binary}", "--input", "{input.state}"]

[[input]]
name = "state"
path = "x.folded"
note = "small"

[[variant]]
name = "base"
binary = "/bin/true"

[[variant]]
name = "other"
binary = "/bin/false"
note = '''another
one'''
build_env = { LEVEL = "2" }
build = ["true"]
"""
_PLAN_WORDS = (
    "[[variant]]", "[variant.rebuild]", "{input.x}", "{", "'''", "= []", "= {}", "2030-01-01", "= 1e400", "= true", "nan",
)  # fmt: skip
KALLSYMS = b"".join(
    b"%016x %s %s%s\n" % (0xFFFFFFFF81000000 + 64 * row, (b"T", b"t", b"W", b"D")[row % 4], b"function_%d" % row, module)
    for row in range(60)
    for module in [b"\t[xfs]" if row > 40 else b""]
)


def _texts(content: bytes, words: Sequence[str], wrap: Callable[[bytes], bytes] = bytes) -> GoodInput:
    return _one_file(content, mutations.text(words), wrap)


def _rules() -> GoodInput:
    files = {"rules.toml": RULES, "x.folded": FOLDED}
    commands = (
        *reading("x.folded", "--rules", "rules.toml"),
        ("rules", "check", "rules.toml"),
        ("rules", "show", "rules.toml"),
    )
    return GoodInput(files, ["rules.toml"], mutations.text(_RULE_WORDS), commands)


def _plan() -> GoodInput:
    command = ("experiment", "run", "plan.toml", "--dry-run")
    return GoodInput({"plan.toml": PLAN, "x.folded": FOLDED}, ["plan.toml"], mutations.text(_PLAN_WORDS), [command])


def _symbol_cache() -> GoodInput | None:
    """What is kept of a program, with checksums that are right."""
    from symbolize.elf.image import parse_image

    program = programs.built("dwarf5").get("program")
    if program is None:
        return None
    recording = program_recording(program, parse_image(program, "program").build_id)
    files = {"x.data": recording, "bin/program": program}
    reading_it = reading("x.data", "--debug-dir", "bin")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for file, content in files.items():
            (directory / file).parent.mkdir(exist_ok=True)
            (directory / file).write_bytes(content)
        limited(_all_lines, directory, Limits())
        kept = sorted(path for path in (directory / "cache").rglob("*") if path.is_file())
        files |= {str(path.relative_to(directory)): path.read_bytes() for path in kept}
    return GoodInput(files, [name for name in files if name.startswith("cache/")], checked_again, reading_it)


def _all_lines() -> int:
    from profiler.cli.main import main

    return main(["report", "x.data", "--by", "line", "--debug-dir", "bin"])


def checked_again(rng: Random, data: bytes) -> bytes:
    """Damage behind a checksum that is put right again; see ``symbolize.column_file``."""
    out = bytearray(data[:32] + mutations.tables(rng, data[32:]))
    struct.pack_into("<I", out, 28, zlib.crc32(out[32:]))
    return bytes(out)


def _store(target: Callable[[str], bool], mutation: Mutation) -> GoodInput:
    fixture = Path(__file__).resolve().parents[1] / "fixtures" / "epoch_demo"
    below = fixture / "store"
    files = {f"store/{path.relative_to(below)}": path.read_bytes() for path in sorted(below.rglob("*")) if path.is_file()}
    commands = (
        ("report", "portable", "--format", "json"), ("report", "sha-ni"), ("compare", "portable", "sha-ni", "--format", "json"),
        ("list",), ("show", "last"), ("export", "portable", "-o", "-", "--format", "folded"), ("rm", "last"),
    )  # fmt: skip
    names = ("--debug-dir", str(fixture))
    with_store = [
        ("--store", "store", *each, *(names if each[0] in ("report", "compare", "export") else ())) for each in commands
    ]
    return GoodInput(files, [name for name in files if target(name)], mutation, with_store)


def reframed(rng: Random, data: bytes) -> bytes:
    """Damage below the checksums of a capture: in its head, or in a table."""
    from profiler.codec.framing import frame, read_head, read_preamble, read_sections
    from profiler.errors import FormatError

    view = memoryview(data)
    try:
        preamble = read_preamble(view, "")
        head, sections = bytes(read_head(view, preamble, "")), [bytes(part) for part in read_sections(view, preamble, "")]
    except FormatError:
        return data
    if rng.random() < 0.4:
        head = mutations.text(("null", "{}", "[]", "-1", "1e400", "true", '"x"'))(rng, head)
    elif sections:
        row = rng.randrange(len(sections))
        damage = rng.choice((mutations.tables, mutations.any_bytes))
        sections[row] = damage(rng, sections[row])
    return frame(preamble.version, head, sections)


def _generated_code(name: str, content: bytes, mutation: Mutation, map_path: str) -> GoodInput:
    """A recording of this host with generated code, whose table is damaged.  ``map_path``: of the file that is mapped."""
    features = {3: writer.feature_string(platform.node()), 4: writer.feature_string(platform.release())}

    def finish(directory: Path) -> None:
        pid = os.getpid()
        recording = RecordingWriter(features=features)
        recording.comm(pid, pid, b"java")
        recording.mmap2(pid, 0x1000, 0x9000, 0, b"//anon")
        if map_path:
            recording.mmap2(pid, 0x20000, 0x1000, 0, os.fsencode(directory / map_path.format(pid=pid)))
        for row in range(40):
            chain = (writer.USER_MARKER, 0x1000 + 16 * row, 0x2000)
            recording.sample(Sample(ip=0x1000 + 16 * row, pid=pid, tid=pid, time=row, chain=chain))
        (directory / "x.data").write_bytes(recording.build())
        table = directory / name
        if map_path:
            own = bytearray(table.read_bytes())
            if own[20:24] == bytes(4):
                own[20:24] = struct.pack("<I", pid)
            (directory / map_path.format(pid=pid)).write_bytes(own)
        else:
            shutil.copy(table, f"/tmp/perf-{pid}.map")

    return GoodInput({name: content}, [name], mutation, reading("x.data"), finish=finish)


def _jit_dump() -> bytes:
    parts = [struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 0, 0, 0)]
    for row in range(30):
        start = 0x1000 + 32 * row
        body = struct.pack("<IIQQQQ", 7, 7, start, start, 32, row) + b"method_%d\0" % row + bytes(32)
        parts.append(struct.pack("<IIQ", 0, 16 + len(body), 5) + body)
    move = struct.pack("<IIQQQQQ", 7, 7, 0x5000, 0x1000, 0x5000, 16, 1)
    return b"".join([*parts, struct.pack("<IIQ", 1, 16 + len(move), 5) + move])


def _perf_map() -> bytes:
    return b"".join(b"%x %x method %d(int)\n" % (0x1000 + 32 * row, 32, row) for row in range(40))


def _makers() -> Iterator[tuple[str, Callable[[], GoodInput | None]]]:
    rich, pipe = _rich_recording(), containers.pipe_mode(_rich_recording())
    yield "perf-file", lambda: _one_file(rich.build())
    yield "perf-pipe", lambda: _one_file(pipe)
    yield "perf-zstd-81", lambda: _one_file(_compressed(rich, 81).build())
    yield "perf-zstd-83", lambda: _one_file(containers.pipe_mode(_compressed(rich, 83)))
    yield "perf-directory", _directory
    yield "perf-gz", lambda: _one_file(gzip.compress(rich.build(), mtime=0), mutations.any_bytes)
    yield "perf-in-gz", lambda: _one_file(rich.build(), wrap=lambda data: gzip.compress(data, 1, mtime=0))
    yield "perf-xz", lambda: _one_file(lzma.compress(pipe), mutations.any_bytes)
    yield "perf-zst", lambda: _one_file(zstandard.compress(pipe), mutations.any_bytes)
    yield "perf-stacks", _program_stacks
    yield "perf-script", lambda: _texts(PERF_SCRIPT, _SCRIPT_WORDS)
    yield (
        "perf-script-utf-16",
        lambda: _texts(PERF_SCRIPT, _SCRIPT_WORDS, lambda data: data.decode("utf-8", "replace").encode("utf-16")),
    )
    yield "folded", lambda: _texts(FOLDED, (";", "1e3", "0.5", "-5", "a;b;c 1"))
    yield "pyspy-raw", lambda: _texts(PYSPY_RAW, (";", "thread (", 'process 9:"', " (a.py:1)", "-5", "(x.so)"))
    yield "pyspy-speedscope", lambda: _texts(PYSPY_SPEEDSCOPE, ("[", "]", "{", "-1", "1e999", "NaN", "null", '"x"', "sampled"))
    yield "rules", _rules
    yield "plan", _plan
    yield "symbol-cache", _symbol_cache
    yield "capture-bytes", lambda: _store(lambda name: name.endswith(".capture"), mutations.tables)
    yield "capture-tables", lambda: _store(lambda name: name.endswith(".capture"), reframed)
    yield "catalog", lambda: _store(lambda name: name.endswith(".sqlite"), mutations.tables)
    yield "perf-map", lambda: _generated_code("table", _perf_map(), mutations.text(("ffffffffffffffff", "0", "-5")), "")
    yield "jit-dump", lambda: _generated_code("table", _jit_dump(), mutations.tables, "jit-{pid}.dump")
    yield (
        "kallsyms",
        lambda: GoodInput({"kallsyms": KALLSYMS}, ["kallsyms"], mutations.text(("ffffffffffffffff", "T")), [("kallsyms",)]),
    )
    for form in programs.FORMS:
        yield f"elf-{form}", lambda form=form: _program(form)  # type: ignore[misc]


MAKERS = dict(_makers())


@cache
def good_input(name: str) -> GoodInput | None:
    """``None`` where a tool that makes it is not installed."""
    return MAKERS[name]()
