"""Header of a line number program: opcode tables and the file names (DWARF 5, section 6.2.4; DWARF 4, the same)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

from profiler.model.quick_dataclass import dataclass
from symbolize.dwarf.attributes import STRUCT_CODES, AttributeSpec, Row, RowReader, row_reader, with_wide_forms
from symbolize.dwarf.constants import (
    FIXED_FORM_SIZES,
    OFFSET_FORMS,
    DW_FORM_udata,
    DW_LNCT_directory_index,
    DW_LNCT_path,
)
from symbolize.dwarf.leb128 import read_unsigned
from symbolize.dwarf.unit_root import UnitRoot
from symbolize.dwarf.units import FORMAT_64_BIT, NO_FORMS


@dataclass(frozen=True, slots=True)
class LineHeader:
    """``data``: the program's unit in .debug_line from its length field on; the program is ``data[program_start:]``.

    ``operand_counts[opcode]``: operands of a standard opcode.  ``file_names``: paths by the number that the program uses;
    number 0 does not exist before version 5.  ``directories``: by number.
    """

    data: bytes
    program_start: int
    minimum_instruction_length: int
    line_base: int
    line_range: int
    opcode_base: int
    operand_counts: bytes
    file_names: tuple[str, ...]
    directories: tuple[str, ...] = ()


def read_line_header(root: UnitRoot) -> LineHeader:
    """The header of the unit's line program; raises one of MALFORMED when damaged or not of version 2 to 5."""
    offset = root.line_offset
    section = root.sections.line
    (length,) = struct.unpack_from("<I", section, offset)
    is_wide, position = length == FORMAT_64_BIT, 4
    if is_wide:
        (length,) = struct.unpack_from("<Q", section, offset + 4)
        position = 12
    end = offset + position + length
    if end > len(section):
        raise ValueError("line program longer than .debug_line")
    data = bytes(section[offset:end])
    (version,) = struct.unpack_from("<H", data, position)
    if not 2 <= version <= 5:
        raise ValueError(f"line program of version {version}")
    position += 4 if version >= 5 else 2
    (header_length,) = struct.unpack_from("<Q" if is_wide else "<I", data, position)
    position += 8 if is_wide else 4
    program_start = position + header_length
    minimum_instruction_length = data[position]
    position += 2 if version >= 4 else 1  # maximum_operations_per_instruction: no VLIW here
    _, line_base, line_range, opcode_base = struct.unpack_from("<BbBB", data, position)
    position += 4
    operand_counts = b"\0" + data[position : position + opcode_base - 1]
    if line_range == 0 or opcode_base == 0 or program_start > len(data):
        raise ValueError("impossible line program header")
    position += opcode_base - 1
    wide = OFFSET_FORMS if is_wide else NO_FORMS
    directories, files = (
        _version_5_files(root, data, position, wide) if version >= 5 else _version_4_files(root, data, position)
    )
    return LineHeader(
        data=data,
        program_start=program_start,
        minimum_instruction_length=minimum_instruction_length,
        line_base=line_base,
        line_range=line_range,
        opcode_base=opcode_base,
        operand_counts=operand_counts,
        file_names=files,
        directories=directories,
    )


def defined_file(header: LineHeader, position: int) -> str:
    """Path of a file that the program itself defines (DW_LNE_define_file, before version 5); its operands are at
    ``position``."""
    end = header.data.index(0, position)
    directory, _ = read_unsigned(header.data, end + 1)
    return _join(header.directories, directory, _text(header.data[position:end]))


FileTable = tuple[tuple[str, ...], tuple[str, ...]]  # (directories, paths of files), both by number


def _version_4_files(root: UnitRoot, data: bytes, position: int) -> FileTable:
    """Directories and files are counted from 1; directory 0 is the compilation directory."""
    directories = [root.compilation_directory]
    while data[position]:
        end = data.index(0, position)
        directories.append(_text(data[position:end]))
        position = end + 1
    position += 1
    names = [root.name]
    while data[position]:
        end = data.index(0, position)
        name = _text(data[position:end])
        directory, position = read_unsigned(data, end + 1)
        for _ in ("modification time", "length"):
            _, position = read_unsigned(data, position)
        names.append(_join(directories, directory, name))
    return tuple(directories), tuple(names)


def _version_5_files(root: UnitRoot, data: bytes, position: int, wide: frozenset[int]) -> FileTable:
    """Directories and files are counted from 0; entry 0 is the compilation directory and the primary source file."""
    directories_read, position = _version_5_entries(root, data, position, wide)
    directories = [name for name, _ in directories_read] or [root.compilation_directory]
    files, _ = _version_5_entries(root, data, position, wide)
    return tuple(directories), tuple(_join(directories, directory, name) for name, directory in files)


def _version_5_entries(root: UnitRoot, data: bytes, position: int, wide: frozenset[int]) -> tuple[list[tuple[str, int]], int]:
    """((path, directory number) per entry, position behind)."""
    format_count = data[position]
    position += 1
    formats: list[AttributeSpec] = []
    for _ in range(format_count):
        content, position = read_unsigned(data, position)
        form, position = read_unsigned(data, position)
        formats.append((content, form, 0))
    count, position = read_unsigned(data, position)
    if count > len(data):
        raise ValueError("more files than the line program can hold")
    specs = with_wide_forms(tuple(formats), wide)
    path_form = {content: form for content, form, _ in formats}.get(DW_LNCT_path, 0)
    count = count if path_form else 0
    rows, behind = _packed_entries(specs, data, position, count)
    if len(rows) < count:
        read_entry = _entry_reader(specs)
        rows, behind = [], position
        for _ in range(count):
            row, behind = read_entry(data, behind)
            rows.append(row)
    return [(_text(root.string(path_form, path, data)), directory) for path, directory in rows], behind


def _packed_entries(specs: tuple[AttributeSpec, ...], data: bytes, position: int, count: int) -> tuple[list[Row], int]:
    """(path, directory number) of all entries, read at once if each has the same size: numbers of one byte, no texts.  None
    of them otherwise.  And the position behind."""
    layout, numbers = _entry_layout(specs)
    size = struct.calcsize(layout) * count
    if not layout or position + size > len(data):
        return [], position
    found = list(struct.iter_unpack(layout, data[position : position + size]))
    if any(row[place] >= 0x80 for place in numbers for row in found):
        return [], position
    kinds = [content for content, _, _ in specs]
    path = kinds.index(DW_LNCT_path)
    if DW_LNCT_directory_index not in kinds:
        return [(row[path], 0) for row in found], position + size
    directory = kinds.index(DW_LNCT_directory_index)
    return [(row[path], row[directory]) for row in found], position + size


@lru_cache(maxsize=16)
def _entry_layout(specs: tuple[AttributeSpec, ...]) -> tuple[str, tuple[int, ...]]:
    """(``struct`` layout with one value per content, which of them are LEB128), "" when a form has no size of
    its own."""
    sizes = [1 if form == DW_FORM_udata else FIXED_FORM_SIZES.get(form, 0) for _, form, _ in specs]
    codes = {content: STRUCT_CODES.get(size, f"{size}s") for (content, _, _), size in zip(specs, sizes, strict=True)}
    needed = (codes.get(DW_LNCT_path, ""), codes.get(DW_LNCT_directory_index, "B"))
    if (
        not all(codes.values())
        or len(codes) < len(specs)
        or any(code not in STRUCT_CODES.values() or not code for code in needed)
    ):
        return "", ()
    return "<" + "".join(codes.values()), tuple(place for place, (_, form, _) in enumerate(specs) if form == DW_FORM_udata)


@lru_cache(maxsize=16)
def _entry_reader(formats: tuple[AttributeSpec, ...]) -> RowReader:
    return row_reader(formats, (DW_LNCT_path, DW_LNCT_directory_index))


def _join(directories: Sequence[str], directory: int, name: str) -> str:
    if name.startswith("/") or not 0 <= directory < len(directories):
        return name
    path = directories[directory]
    if not path.startswith("/") and directory > 0 and directories[0]:
        path = f"{directories[0]}/{path}"
    return f"{path}/{name}" if path else name


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
