from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.demangle import LONGEST_SYMBOL, demangle, is_rust_legacy, split_suffix

# The Itanium C++ ABI, Rust RFC 2603 and symbols printed by c++filt 2.40 and rustfilt.
READABLE = {
    "_Z3foov": "foo()",
    "_ZN2ns1CC1Ei": "ns::C::C(int)",
    "_ZN12_GLOBAL__N_11fEv": "(anonymous namespace)::f()",
    "_Z3foov.cold": "foo() [clone .cold]",
    "_Z3foov.constprop.0.cold": "foo() [clone .constprop.0] [clone .cold]",
    "_Z3foov.part.1.isra.0": "foo() [clone .part.1] [clone .isra.0]",
    "_Z3foov.llvm.1234567890": "foo() [clone .llvm.1234567890]",
    "_Z3foov.lto_priv.0": "foo() [clone .lto_priv.0]",
    "_Z3foov@@GLIBCXX_3.4": "foo()@@GLIBCXX_3.4",
    "_RNvC6_123foo3bar": "123foo::bar",
    "_RNvMs_NtCs1234_4core3stre3len": "<str>::len",
    "_RNCNvCs1_5crate4main0.llvm.77": "crate::main::{closure#0} [clone .llvm.77]",
    "_ZN3foo3bar17h05af221e174051e9E": "foo::bar",
    "_ZN3foo3bar17h05af221e174051e9E.llvm.12": "foo::bar [clone .llvm.12]",
    "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE": (
        "<Test + 'static as foo::Bar<Test>>::bar"
    ),
}
UNCHANGED = ["main", "", "malloc@plt", "cfree@GLIBC_2.2.5", "_Zinvalid", "_Rfoo", "_", "_Z", "_R", "foo.cold", "ZN4testE"]


@pytest.mark.parametrize(("linkage_name", "readable"), READABLE.items())
def test_published_examples(linkage_name: str, readable: str) -> None:
    assert demangle(linkage_name) == readable


@pytest.mark.parametrize("name", UNCHANGED)
def test_names_that_are_not_mangled_stay(name: str) -> None:
    assert demangle(name) == name


def test_a_cxx_name_that_ends_like_a_hash_stays_cxx() -> None:
    """``h`` + 16 equal digits is an identifier somebody wrote, not a hash."""
    assert not is_rust_legacy("_ZN3foo17h0000000000000000E")
    assert demangle("_ZN3foo17h0000000000000000Ev") == "foo::h0000000000000000()"


def test_suffixes_split_off() -> None:
    assert split_suffix("_Z3foov.constprop.0.cold") == ("_Z3foov", ".constprop.0.cold", "")
    assert split_suffix("_Z3foov@@V_1.2") == ("_Z3foov", "", "@@V_1.2")
    legacy = "_ZN4core3ptr52drop_in_place$LT$alloc..vec..Vec$LT$u8$GT$$GT$17h05af221e174051e9E"
    assert split_suffix(legacy + ".llvm.3") == (legacy, ".llvm.3", "")


def test_very_long_names_stay_as_they_are() -> None:
    name = "_Z" + "3foo" * LONGEST_SYMBOL
    assert demangle(name) == name


@given(st.text(max_size=60), st.sampled_from(["", "_Z", "_ZN", "_R", "_RNv", "_Z3foo"]))
def test_any_text_is_answered(text: str, prefix: str) -> None:
    assert isinstance(demangle(prefix + text), str)


def test_rustc_demangle_vectors(corpus: Path) -> None:
    """The table of rustc-demangle's own tests; lines are source, macro, mangled, expected."""
    rows = [line.split("\t") for line in (corpus / "EXPECTED/rustc_demangle.handed.tsv").read_text().splitlines()]
    wanted = {row[2]: row[3] for row in rows if row[1] == "t_nohash" and is_rust_legacy(split_suffix(row[2])[0])}
    assert len(wanted) >= 4
    for mangled, expected in wanted.items():
        clones = split_suffix(mangled)[1]
        # The reference keeps suffixes other than .llvm as they are; here all of them are marked.
        assert demangle(mangled).split(" [clone")[0] == expected.removesuffix(clones)


def test_gcc_demangler_vectors_agree_with_the_binutils(corpus: Path) -> None:
    """Names of GCC's own test list: where c++filt knows an answer, so do we."""
    lines = (corpus / "ianlancetaylor+demangle/testdata/demangle-expected").read_text(errors="replace").splitlines()
    names = [line for line in lines if line.startswith("_Z") and " " not in line and len(line) < 500]
    tool = shutil.which("c++filt")
    if tool is None:
        pytest.skip("c++filt is not installed")
    printed = subprocess.run([tool], input="\n".join(names) + "\n", check=True, capture_output=True, text=True).stdout
    known = [name for name, readable in zip(names, printed.splitlines(), strict=True) if readable != name]
    unanswered = [name for name in known if demangle(name) == name]
    assert len(known) > 300
    assert len(unanswered) <= len(known) // 100
