"""How a file is known again: by its build ID, or where a linker gave it none by its content."""

from __future__ import annotations

import hashlib

from symbolize.elf.image import ElfImage

# Build IDs of linkers have at most 20 bytes.
_CONTENT_ID_BYTES = hashlib.sha256().digest_size


def identity_of(image: ElfImage) -> bytes:
    """The build ID; of a file that has none the SHA-256 of all its bytes."""
    return bytes(image.build_id) or hashlib.sha256(image.data).digest()


def is_build(image: ElfImage, build_id: bytes) -> bool:
    """Whether ``build_id`` is the identity of the file."""
    if image.build_id or len(build_id) != _CONTENT_ID_BYTES:
        return bool(build_id) and image.build_id == build_id
    return hashlib.sha256(image.data).digest() == build_id
