"""Common information and frame description entries of .eh_frame and .debug_frame (DWARF 5, 6.4.1; LSB core for .eh_frame)."""

from __future__ import annotations

from collections.abc import Iterator

from profiler.errors import FormatError
from profiler.model.quick_dataclass import dataclass
from symbolize.elf.dwarf_encoding import DW_EH_PE_OMIT, encoded_pointer, sleb128, uleb128

_LENGTH_64_BIT = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class CommonInformation:
    """A CIE.  ``instructions`` and those of an FDE are (start, end) in the section."""

    code_alignment: int
    data_alignment: int
    return_register: int
    pointer_encoding: int
    has_augmentation_data: bool
    is_signal_frame: bool
    instructions: tuple[int, int]


@dataclass(frozen=True, slots=True)
class FrameDescription:
    """An FDE: code at link addresses ``start`` .. ``end`` (exclusive)."""

    common: CommonInformation
    start: int
    end: int
    instructions: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Entry:
    """Frame of one entry: where its identifier field lies, how wide it is, where the entry ends."""

    identifier_at: int
    identifier_bytes: int
    end: int


class CallFrameSection:
    """Reader of one section.  ``data``: its bytes; ``link_address``: of the first byte; ``is_eh_frame`` selects the rules in
    which the two kinds of section differ.  Entries are addressed by their offset in the section."""

    __slots__ = ("_commons", "data", "is_eh_frame", "link_address", "source")

    def __init__(self, data: memoryview, link_address: int, is_eh_frame: bool, source: str) -> None:
        self.data = data
        self.link_address = link_address
        self.is_eh_frame = is_eh_frame
        self.source = source
        self._commons: dict[int, CommonInformation] = {}

    def fde(self, offset: int) -> FrameDescription:
        """The FDE at ``offset``.  Raises ``FormatError`` when there is none or it is damaged."""
        try:
            entry = self._entry(offset)
            common_offset = self._common_offset(entry)
            if common_offset is None:
                raise FormatError(self.source, "a frame description entry was expected", offset)
            common = self._common(common_offset)
            start, end, position = self._range(entry, common)
            if common.has_augmentation_data:
                size, position = uleb128(self.data, position)
                position += size
            return FrameDescription(common, start, end, (min(position, entry.end), entry.end))
        except (IndexError, ValueError) as error:
            raise FormatError(self.source, f"damaged call frame information ({error})", offset) from error

    def common(self, offset: int) -> CommonInformation:
        """The CIE at ``offset``.  Raises ``FormatError`` when there is none or it is damaged."""
        try:
            return self._common(offset)
        except (IndexError, ValueError) as error:
            raise FormatError(self.source, f"damaged call frame information ({error})", offset) from error

    def fde_ranges(self) -> Iterator[tuple[int, int, int]]:
        """(start link address, end, offset of the FDE) of every readable FDE, in file order; damaged ones are passed over."""
        position = 0
        while position + 4 <= len(self.data):
            try:
                entry = self._entry(position)
            except IndexError:
                return
            if entry.end > entry.identifier_at:
                try:
                    common_offset = self._common_offset(entry)
                    if common_offset is not None:
                        start, end, _ = self._range(entry, self._common(common_offset))
                        yield start, end, position
                except (IndexError, ValueError):
                    pass
            position = entry.end

    def _entry(self, offset: int) -> _Entry:
        data = self.data
        length, position, width = self._unsigned(offset, 4), offset + 4, 4
        if length == _LENGTH_64_BIT:
            length, position, width = self._unsigned(offset + 4, 8), offset + 12, 8
        if length > len(data) - position:
            raise IndexError(offset)
        # In .eh_frame the identifier has 4 bytes whatever the length field says.
        return _Entry(position, 4 if self.is_eh_frame else width, position + length)

    def _common_offset(self, entry: _Entry) -> int | None:
        """Offset of the CIE that an FDE refers to; ``None`` for a CIE."""
        if entry.end - entry.identifier_at < entry.identifier_bytes:
            raise IndexError(entry.identifier_at)
        identifier = self._unsigned(entry.identifier_at, entry.identifier_bytes)
        if self.is_eh_frame:
            return entry.identifier_at - identifier if identifier else None
        return None if identifier == 2 ** (8 * entry.identifier_bytes) - 1 else identifier

    def _range(self, entry: _Entry, common: CommonInformation) -> tuple[int, int, int]:
        """(start, end, position behind) of an FDE's code range."""
        position = entry.identifier_at + entry.identifier_bytes
        start, position = encoded_pointer(self.data, position, common.pointer_encoding, (self.link_address, 0))
        size, position = encoded_pointer(self.data, position, common.pointer_encoding & 0x0F)
        return start, start + size, position

    def _common(self, offset: int) -> CommonInformation:
        known = self._commons.get(offset)
        if known is None:
            if offset < 0:
                raise IndexError(offset)
            known = self._commons[offset] = self._parse_common(self._entry(offset))
        return known

    def _parse_common(self, entry: _Entry) -> CommonInformation:
        data = self.data
        if self._common_offset(entry) is not None:
            raise ValueError("no CIE where the FDE points")
        position = entry.identifier_at + entry.identifier_bytes
        version = data[position]
        if version not in (1, 3, 4):
            raise ValueError(f"CIE version {version}")
        augmentation, position = self._string(position + 1, entry.end)
        if version == 4:
            position += 2  # address and segment selector size
        if augmentation.startswith("eh"):
            position += 8
        code_alignment, position = uleb128(data, position)
        data_alignment, position = sleb128(data, position)
        return_register, position = (data[position], position + 1) if version == 1 else uleb128(data, position)
        encoding, is_signal, has_data = 0, False, augmentation.startswith("z")
        if has_data:
            size, position = uleb128(data, position)
            encoding, is_signal = self._augmentation(augmentation[1:], position)
            position += size
        elif augmentation not in ("", "eh"):
            raise ValueError(f"augmentation {augmentation!r}")
        instructions = (min(position, entry.end), entry.end)
        return CommonInformation(code_alignment, data_alignment, return_register, encoding, has_data, is_signal, instructions)

    def _augmentation(self, letters: str, position: int) -> tuple[int, bool]:
        """(pointer encoding, is a signal frame)."""
        encoding, is_signal = 0, False
        for letter in letters:
            if letter == "R":
                encoding = self.data[position]
                position += 1
            elif letter == "L":
                position += 1
            elif letter == "P":
                personality = self.data[position]
                position += 1
                if personality != DW_EH_PE_OMIT:
                    _, position = encoded_pointer(self.data, position, personality & 0x0F)
            elif letter == "S":
                is_signal = True
            elif letter != "B":
                break  # unknown letters end what can be known; the size of the data is known all the same
        return encoding, is_signal

    def _string(self, position: int, limit: int) -> tuple[str, int]:
        letters: list[str] = []
        while position < limit:
            byte = self.data[position]
            position += 1
            if not byte:
                return "".join(letters), position
            letters.append(chr(byte))
        raise IndexError(position)

    def _unsigned(self, position: int, size: int) -> int:
        if position + size > len(self.data):
            raise IndexError(position)
        return int.from_bytes(self.data[position : position + size], "little")
