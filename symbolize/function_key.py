"""The canonical name of a function: equal for one logical function across builds, manglings, toolchains and instances.

Left out are Rust hashes and crate disambiguators, generic and template arguments, closure and lambda numbers, C++ return types,
parameter lists and ABI tags, clone suffixes, symbol versions and Nim's module suffixes.  ``<T as Trait>::f`` becomes ``T::f``
with ``Trait::f`` as a second key.  The shown name is never changed.
"""

from __future__ import annotations

import re

from profiler.model.quick_dataclass import dataclass
from symbolize.demangle import MANGLED_PREFIXES, demangle
from symbolize.name_scanner import canonical_path

_CLONES = re.compile(r" \[clone [^\]]*\]| \(\.[\w.]+\)$")
_VERSION = re.compile(r"@{1,2}(?!plt\b)[A-Za-z_][\w.]*$")
_CLONE_SUFFIX = re.compile(
    r"(?<=.)(?:\.(?:cold|constprop|isra|part|llvm|lto_priv|localalias|clone|ipa|specialized|warm|hot|__uniq)(?:\.\d+)*)+$"
)
_NUMBER_SUFFIX = re.compile(r"(?<=\w)(?:\.\d+)+$")
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
_THUNK = re.compile(r"^(?:non-virtual thunk to|virtual thunk to|covariant return thunk to) ")
_NIM = re.compile(r"^([A-Za-z]\w*?)__(?:\w+_u\d+|(?=\w*\d)(?=\w*[a-z])(?=\w*[A-Z])[A-Za-z0-9]{20,24}(?:_\d+)?)$")
_GO_CLOSURE = re.compile(r"(?<=\.func)\d+(?:\.\d+)*")
_PLAIN = re.compile(r"[\w:$~]*")
# In v0 mangling, behind nested paths and generic instances: a method that a trait itself provides, or the path of a trait's
# implementation, of which the crate matters.
_V0_PROVIDED = re.compile(r"_R(?:I|N[A-Za-z])*Y")
_V0_IMPLEMENTED = re.compile(r"_R(?:I|N[A-Za-z])*X(?:s[0-9A-Za-z]*_)?(?:N[A-Za-z])*C(?:s[0-9A-Za-z]*_)?\d+_?(core|alloc|std)")
# Crates of the standard library, each built on those before it.
_STANDARD_CRATES = ("core", "alloc", "std")
_TYPE_PARAMETER = re.compile(r"[A-Z]\w*(?=::)")
_PRIMITIVE_TYPES = re.compile(r"bool|char|str|fn|[ui](?:8|16|32|64|128|size)|f(?:16|32|64|128)")
_MOST_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class FunctionKey:
    """``trait_key`` is "Trait::f" for ``<T as Trait>::f``, else empty."""

    key: str
    trait_key: str


def function_key(linkage_or_shown_name: str) -> FunctionKey:
    """Key of a mangled or a readable name.

    Total: any text has a key, at worst itself.  ``function_key(k.key).key == k.key``.  Where a linkage name tells that a method
    is the trait's own or implemented for all types at once, its key is ``Trait::f``: legacy mangling has no more than that.
    """
    is_mangled = linkage_or_shown_name.startswith(MANGLED_PREFIXES)
    return demangled_key(linkage_or_shown_name, demangle(linkage_or_shown_name) if is_mangled else linkage_or_shown_name)


def demangled_key(linkage_name: str, shown: str) -> FunctionKey:
    """``function_key`` of a name whose readable form is known already."""
    key, trait_key = _canonical(shown)
    if trait_key and linkage_name.startswith(MANGLED_PREFIXES) and _is_for_all_types(linkage_name, key):
        key = trait_key
    return FunctionKey(_settled(key), trait_key)


def _settled(key: str) -> str:
    """The key whose key is itself.  Text that gets shorter settles for certain; other text is given up after some rounds."""
    rounds = 0
    while rounds < _MOST_ROUNDS:
        again, _ = _canonical(key)
        if again == key:
            break
        rounds += len(again) >= len(key)
        key = again
    return key


def _is_for_all_types(linkage_name: str, key: str) -> bool:
    """Whether ``<T as Trait>::f`` does not belong to T: legacy names have a type parameter there, v0 names the type of the
    instance, which a crate below the type's own crate cannot have known."""
    if not linkage_name.startswith("_R"):
        return _TYPE_PARAMETER.match(key) is not None
    if _V0_PROVIDED.match(linkage_name):
        return True
    implemented = _V0_IMPLEMENTED.match(linkage_name)
    crate, colons, _ = key.partition("::")
    if implemented is None or not colons or not crate.isidentifier() or _PRIMITIVE_TYPES.fullmatch(crate):
        return False
    below = _STANDARD_CRATES.index(implemented[1])
    return crate not in _STANDARD_CRATES[: below + 1]


def _canonical(shown: str) -> tuple[str, str]:
    text = _without_suffixes(shown)
    if _PLAIN.fullmatch(text):
        return text, ""
    key, trait_key = canonical_path(_THUNK.sub("", text))
    return key or text, trait_key


def _without_suffixes(text: str) -> str:
    if "[clone" in text or "(." in text:
        text = _CLONES.sub("", text)
    if "@" in text:
        text = _VERSION.sub("", text)
    if "." in text:
        text = _NUMBER_SUFFIX.sub("", _CLONE_SUFFIX.sub("", text))
        text = _GO_CLOSURE.sub("", text)
    if "::h" in text:
        text = _RUST_HASH.sub("", text)
    if "__" in text:
        nim = _NIM.match(text)
        text = nim[1] if nim is not None else text
    return text
