"""The canonical name of a function: equal for one logical function across builds, manglings, toolchains and instances.

Left out are Rust hashes and crate disambiguators, generic and template arguments, closure and lambda numbers, C++ return types,
parameter lists and ABI tags, clone suffixes, symbol versions and Nim's module suffixes.  ``<T as Trait>::f`` becomes ``T::f``
with ``Trait::f`` as a second key.  The shown name is never changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
# In v0 mangling: nested paths and generic instances around a method that a trait itself provides.
_V0_TRAIT_METHOD = re.compile(r"_R(?:I|N[A-Za-z])*Y")
_MOST_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class FunctionKey:
    """``trait_key`` is "Trait::f" for ``<T as Trait>::f``, else empty."""

    key: str
    trait_key: str


def function_key(linkage_or_shown_name: str) -> FunctionKey:
    """Key of a mangled or a readable name.

    Total: any text has a key, at worst itself.  ``function_key(k.key).key == k.key``.  A method that a trait provides has the
    key ``Trait::f``, as in Rust's legacy mangling, where only the v0 linkage name tells it from one of ``T``.
    """
    shown = demangle(linkage_or_shown_name) if linkage_or_shown_name.startswith(MANGLED_PREFIXES) else linkage_or_shown_name
    key, trait_key = _canonical(shown)
    if trait_key and _V0_TRAIT_METHOD.match(linkage_or_shown_name):
        key = trait_key
    for _ in range(_MOST_ROUNDS):
        again, _ = _canonical(key)
        if again == key:
            break
        key = again
    return FunctionKey(key, trait_key)


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
