"""Published demangling vectors: equal, or different for a reason that is named."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from symbolize.demangle import demangle, split_suffix

HASH = re.compile(r"::h[0-9a-f]{16}$")
RUST_PUNCTUATION = re.compile(r"\$[A-Z]{1,2}\$|\$u[0-9a-f]+\$|\.\.")


def rustc_reason(macro: str, mangled: str, expected: str, ours: str) -> str:
    """Why ``ours`` differs from what rustc-demangle prints, "" when nothing explains it."""
    _, clones, version = split_suffix(mangled)
    bare = HASH.sub("", expected)
    if not mangled.startswith("_Z"):
        return "names of macOS and Windows"
    if ours == bare:
        return "hash not shown"
    # rustc ends every legacy name with 17h and 16 digits; what does not is C++.
    is_rust = re.search(r"17h[0-9a-f]{16}E", mangled) is not None
    if not is_rust and (RUST_PUNCTUATION.search(mangled) or macro == "t_nohash"):
        return "no hash, so not Rust's"
    if clones:
        shown = HASH.sub("", bare.removesuffix(version).removesuffix(clones))
        is_marked = ours.startswith(shown + " [clone ") and "".join(re.findall(r"\[clone (.*?)\]", ours)) == clones
        return "clone suffix marked" if is_marked or macro == "t_err" else ""
    return ""


def test_rustc_demangle_table(corpus: Path) -> None:
    rows = [line.split("\t") for line in (corpus / "EXPECTED/rustc_demangle.handed.tsv").read_text().splitlines()]
    reasons: dict[str, int] = {}
    for macro, mangled, *rest in (row[1:] for row in rows):
        expected = rest[0] if rest else mangled
        ours = demangle(mangled)
        if ours != expected:
            why = rustc_reason(macro, mangled, expected, ours)
            assert why, (macro, mangled, expected, ours)
            reasons[why] = reasons.get(why, 0) + 1
    assert len(rows) == 39
    assert reasons == {
        "names of macOS and Windows": 6,
        "hash not shown": 2,
        "clone suffix marked": 6,
        "no hash, so not Rust's": 12,
    }


def test_rust_v0_vectors(corpus: Path) -> None:
    """LLVM's own test of Rust v0 names; clone suffixes are marked as those of C++ are."""
    lines = (corpus / "ianlancetaylor+demangle/testdata/rust.test").read_text().splitlines()
    pairs = [(line[7:], name.strip()) for line, name in itertools.pairwise(lines) if line.startswith("CHECK: ")]
    assert len(pairs) == 152
    different = [(mangled, demangle(mangled)) for wanted, mangled in pairs if demangle(mangled) != wanted]
    assert different == [
        ("_RIC5traitFG_DG_EL0_EuE", "trait::<for<'a> fn(dyn for<'b>  + 'a)>"),  # a blank more, for a trait object of no trait
        ("_RC3dot.llvm.1234", "dot [clone .llvm.1234]"),
        ("_RC3dotC5crate.llvm.6789", "dot [clone .llvm.6789]"),
    ]


# What LLVM's demangler writes otherwise than GNU's, by what stands in the mangled name.  First match counts.
STYLES = (
    ("Java", re.compile(r"java|JArray|6JArray|eclipse")),
    ("closures and unnamed types: 'lambda'() for {lambda()#1}", re.compile(r"Ul|Ut_|UlT")),
    ("expressions: fewer parentheses, fp for {parm#1}", re.compile(r"DT|Dt|X[a-zL]|A[a-z]{2}T_|ApltT|AplT|AsP|fL|fR|X")),
    ("vectors and vendor types", re.compile(r"Dv\d|DF\d|U[78]|U4bart|U3foo|U8")),
    ("return types of local names", re.compile(r"^_ZZ")),
    ("spelling of a type", re.compile(r"Dn|Dx|A_|A2_|A3_|A6_|A9_|DaS|M1YK|KFiv|FivEv")),
)


def test_gcc_s_own_vectors(corpus: Path) -> None:
    """Names of libiberty's test: those in which nothing of ``STYLES`` stands are equal but for blanks."""
    text = (corpus / "ianlancetaylor+demangle/testdata/demangle-expected").read_text(errors="replace")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    equal, styled, rest = 0, 0, []
    position = 0
    while position + 2 < len(lines):
        options, mangled, expected = lines[position : position + 3]
        position += 4 if "--no-params" in options else 3
        if not mangled.startswith("_Z") or "--is-v3" in options or "--ret-" in options:
            continue
        if re.sub(r"\s", "", demangle(mangled)) == re.sub(r"\s", "", expected):
            equal += 1
        elif any(pattern.search(mangled) for _, pattern in STYLES):
            styled += 1
        else:
            rest.append(mangled)
    print(f"{equal} equal, {styled} in another style, {rest}")
    assert (equal, styled) == (213, 124)
    assert rest == [
        # An old GCC's name of an anonymous namespace, with a dot in it; no demangler of today takes it.
        "_ZGVN5libcw24_GLOBAL__N_cbll.cc0ZhUKa23compiler_bug_workaroundISt6vectorINS_13omanip_id_tctINS_5debug"
        "32memblk_types_manipulator_data_ctEEESaIS6_EEE3idsE",
        "_ZN1DCI11BEi",  # an inherited constructor: D::D(int) for D::B(int)
        "_ZN1SILi1EEF3barIiEEiR4Base",  # friend bar for bar[friend]
        "_Z1fIiQ1CIT_EEvv",  # the requires clause is left out
        "_Z1fIiEvvQ1CIT_E",  # requires C<T> for C<int>
    ]


@pytest.mark.parametrize(
    ("mangled", "shown"),
    [
        ("_ZN3fooE.llvm.9D1C9369", "foo [clone .llvm.9D1C9369]"),
        ("_ZN9backtrace3foo17hbb467fcdaea5d79bE.llvm.A5310EB9", "backtrace::foo [clone .llvm.A5310EB9]"),
        ("_Z3foov.cold.12", "foo() [clone .cold.12]"),
        ("_Z3foov.part.0.constprop.1", "foo() [clone .part.0] [clone .constprop.1]"),
        ("_Z3foov.isra.0.cold@@V2", "foo() [clone .isra.0] [clone .cold]@@V2"),
    ],
)
def test_every_character_of_a_clone_suffix_is_kept(mangled: str, shown: str) -> None:
    assert demangle(mangled) == shown
