from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from symbolize.demangle import demangle
from symbolize.function_key import FunctionKey, function_key

CXX = {
    "_ZNK2ns1SltERKS0_": "ns::S::operator<",
    "_ZN2nslsI1AEERSoS2_RKT_": "ns::operator<<",
    "_ZN2nsltI1AEEbRKT_S4_": "ns::operator<",
    "bool ns::operator< <A>(A const&, A const&)": "ns::operator<",
    "std::ostream& ns::operator<< <A>(std::ostream&, A const&)": "ns::operator<<",
    "ns::operator<=><A>(A, A)": "ns::operator<=>",
    "_ZN1AptEv": "A::operator->",
    "ns::x::operator-><int>()": "ns::x::operator->",
    "ns::x::operator-=(int)": "ns::x::operator-=",
    "ns::x::operator[](unsigned long) const": "ns::x::operator[]",
    "ns::Op::operator()<int, (ns::K)3>(int)": "ns::Op::operator()",
    "std::function<void (int)>::operator()(int) const": "std::function::operator()",
    "A::operator bool() const": "A::operator bool",
    "A::operator std::vector<int, std::allocator<int> >() const": "A::operator std::vector",
    "operator new(unsigned long)": "operator new",
    "operator delete[](void*)": "operator delete[]",
    'operator"" _km(long double)': 'operator"" _km',
    "_ZZ4mainENKUliE_clEi": "main::{lambda}::operator()",
    "main::{lambda(int)#2}::operator()(int) const": "main::{lambda}::operator()",
    "main::'lambda0'(int)::operator()(int) const": "main::{lambda}::operator()",
    "main::<lambda(int)>::operator()": "main::{lambda}::operator()",
    "_ZZ4mainENK3$_0clEv": "main::{lambda}::operator()",
    "_ZN12_GLOBAL__N_11fEv": "(anonymous namespace)::f",
    "ns::(anonymous namespace)::C<int>::f(char) const &": "ns::(anonymous namespace)::C::f",
    "ns::{anonymous}::f": "ns::(anonymous namespace)::f",
    "_Z3fooB5cxx11v": "foo",
    "std::__cxx11::basic_string<char>::append[abi:cxx11](char const*)": "std::__cxx11::basic_string::append",
    "_Z1fIiEPFvcET_": "f",
    "void (*ns::f<int>(int))(char)": "ns::f",
    "int (&ns::table(int))[3]": "ns::table",
    "_Z3barIiEDTcl3fooEET_": "bar",
    "decltype (foo()) ns::bar<int>(int)": "ns::bar",
    "std::enable_if<(1 > 0), int>::type ns::h<int>(int)": "ns::h",
    "unsigned long ns::C<int>::g(int) const": "ns::C::g",
    "void ns::f<&A::operator<(A const&)>(int)": "ns::f",
    "int f<(char)40>(int)": "f",
    "bool foo(int) requires C<int>": "foo",
    "ns::f(int)::Local::g()": "ns::f::Local::g",
    "ns::f(int) const::Local::g()": "ns::f::Local::g",
    "A::~A()": "A::~A",
    "_ZThn16_N1B1fEv": "B::f",
    "vtable for foo::Bar": "vtable for foo::Bar",
}
SUFFIXES = {
    "_Z3foov.constprop.0.cold": "foo",
    "foo() [clone .constprop.0] [clone .cold]": "foo",
    "foo() (.llvm.123)": "foo",
    "foo.isra.0.part.1.cold": "foo",
    "nested.1": "nested",
    "cfree@GLIBC_2.2.5": "cfree",
    "malloc@@GLIBC_2.2.5": "malloc",
    "malloc@plt": "malloc@plt",
    "process_epoch__state95transition95epoch_u123": "process_epoch",
    "rawAlloc__qc3r7sYmYkZJJO4GuhMBBA": "rawAlloc",
    "rawAlloc__qc3r7sYmYkZJJO4GuhMBBA_2": "rawAlloc",
    "main.main.func1": "main.main.func",
    "main.main.func2.1": "main.main.func",
    "main.(*Tree).Insert": "main.(*Tree).Insert",
    "main.Map[go.shape.int]": "main.Map",
}
UNCHANGED = [
    *("main", "__x64_sys_read", "__memmove_avx512_unaligned_erms", "_int_malloc", "my odd name", "test test::foob", "<module>"),
    *(
        "foo (app.py:10)",
        "(garbage collector)",
        "[unknown]",
        "0x7f12",
        "libfoo.so+0x12ab",
        "",
        "a<b",
        "x(",
        "operator",
        "LazyCompile:~f",
    ),
]
RUST = {
    "alloc::vec::Vec<T,A>::push": ("alloc::vec::Vec::push", ""),
    "<alloc::vec::Vec<u8>>::push": ("alloc::vec::Vec::push", ""),
    "<T>::f": ("T::f", ""),
    "<T as Trait>::f": ("T::f", "Trait::f"),
    "<a::T<u8> as b::Trait<c::D>>::f::<e::G>": ("a::T::f", "b::Trait::f"),
    "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop": ("alloc::vec::Vec::drop", "core::ops::drop::Drop::drop"),
    "<<T as Tr>::X as Y>::f": ("T::X::f", "Y::f"),
    "<&'a mut foo::X<'a> as A>::b": ("foo::X::b", "A::b"),
    "<m::List<T,N> as m::Tr<A>>::get::{closure#3}": ("m::List::get::{closure}", "m::Tr::get::{closure}"),
    "core::slice::<impl [T]>::len": ("[_]::len", ""),
    "<[u8]>::len": ("[_]::len", ""),
    "core::num::<impl u32>::rotate_left": ("u32::rotate_left", ""),
    "<u32>::rotate_left": ("u32::rotate_left", ""),
    "core::ptr::mut_ptr::<impl *mut T>::add": ("*mut::add", ""),
    "<*mut u8>::add": ("*mut::add", ""),
    "core::slice::<impl core::iter::traits::IntoIterator for &'a [T]>::into_iter": (
        "[_]::into_iter",
        "core::iter::traits::IntoIterator::into_iter",
    ),
    "<dyn core::any::Any+core::marker::Send>::is": ("dyn core::any::Any::is", ""),
    "<dyn core::any::Any + core::marker::Send>::is": ("dyn core::any::Any::is", ""),
    "<fn(i32) -> u8 as core::fmt::Debug>::fmt": ("fn::fmt", "core::fmt::Debug::fmt"),
    "<(A, B) as core::fmt::Debug>::fmt": ("(_)::fmt", "core::fmt::Debug::fmt"),
    "treelib::tree_hash::<app::Validator>": ("treelib::tree_hash", ""),
    "foo::bar::{{closure}}": ("foo::bar::{closure}", ""),
    "foo::bar::{closure#0}::{closure#1}::<u8>": ("foo::bar::{closure}::{closure}", ""),
    "core::ops::function::FnOnce::call_once{{vtable.shim}}": ("core::ops::function::FnOnce::call_once::{shim}", ""),
    "core[846817f741e54dfd]::slice::foo": ("core::slice::foo", ""),
    "foo::h05af221e174051e8": ("foo", ""),
    "foo::bar [clone .llvm.12]": ("foo::bar", ""),
}


@pytest.mark.parametrize(("name", "key"), [*CXX.items(), *SUFFIXES.items()])
def test_cxx_and_suffixed_names(name: str, key: str) -> None:
    assert function_key(name) == FunctionKey(key, "")


@pytest.mark.parametrize("name", UNCHANGED)
def test_other_names_survive(name: str) -> None:
    assert function_key(name) == FunctionKey(name, "")


@pytest.mark.parametrize(("name", "keys"), RUST.items())
def test_rust_names(name: str, keys: tuple[str, str]) -> None:
    assert function_key(name) == FunctionKey(*keys)


@pytest.mark.parametrize(
    ("legacy", "v0", "key"),
    [
        ("_ZN7treelib9tree_hash17h604f2ab1c3d4e5f6E", "_RINvCs1_7treelib9tree_hashNtCs2_3app9ValidatorE", "treelib::tree_hash"),
        ("_ZN4core3str21_$LT$impl$u20$str$GT$3len17h05af221e174051e9E", "_RNvMNtCs7_4core3stre3len", "str::len"),
        ("_ZN2cc5spawn28_$u7b$$u7b$closure$u7d$$u7d$17h05af221e174051e9E", "_RNCNvCs6_2cc5spawn0B3_", "cc::spawn::{closure}"),
        # A method that the trait provides, and one implemented for all types: legacy names do not have the type.
        (
            "_ZN3std2io5Write9write_fmt17h05af221e174051e9E",
            "_RNvYNtCs1_3app3LogNtNtCs2_3std2io5Write9write_fmtB4_",
            "std::io::Write::write_fmt",
        ),
        (
            "_ZN45_$LT$T$u20$as$u20$alloc..string..ToString$GT$9to_string17h05af221e174051e9E",
            "_RNvXs_NtCs2_5alloc6stringNtCs1_3app4LeafNtB4_8ToString9to_string",
            "alloc::string::ToString::to_string",
        ),
    ],
)
def test_both_rust_manglings_give_one_key(legacy: str, v0: str, key: str) -> None:
    assert function_key(legacy).key == key
    assert function_key(v0).key == key


NAME_PARTS = (
    "ns::|f|<|>|(|)|[|]|{|}| |::|operator|operator<<|impl | as | for |&|'a |lambda|'lambda'|$_0|dyn |fn(|T|u8|.cold|.0|@V1|#1"
    "|->|-|const|*|[clone .x]|[abi:a]|(anonymous namespace)|decltype|{closure#0}|{{closure}}|__|_u1|h05af221e174051e9|,"
)


@given(st.one_of(st.lists(st.sampled_from(NAME_PARTS.split("|")), max_size=12).map("".join), st.text(max_size=30)))
@example("operator<operator<operator<")
@example("<<<<as>>::>::f")
def test_a_key_is_its_own_key(name: str) -> None:
    key = function_key(name).key
    assert function_key(key).key == key


def test_deep_nesting_does_not_exhaust_the_stack() -> None:
    name = "<" * 300 + "T" + " as X>::f" * 300
    assert function_key(name).key == "T" + "::f" * 300


def test_gcc_vectors_have_stable_keys_without_arguments(corpus: Path) -> None:
    lines = (corpus / "ianlancetaylor+demangle/testdata/demangle-expected").read_text(errors="replace").splitlines()
    names = [line for line in lines if line.startswith("_Z") and " " not in line and len(line) < 500]
    for name in names:
        key = function_key(name)
        assert function_key(key.key).key == key.key, name
        if demangle(name) != name:
            assert key.key, name
    assert len(names) > 300


def test_keys_of_instances_and_clones_of_libstdcxx_coincide_with_their_templates() -> None:
    """Instances of one template, as nm lists them, share the key that their source spells."""
    instances = [
        "_ZNSt6vectorIiSaIiEE9push_backERKi",
        "_ZNSt6vectorIdSaIdEE9push_backERKd",
        "_ZNSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS5_EE9push_backERKS5_",
        "_ZNSt6vectorIiSaIiEE9push_backERKi.constprop.0",
    ]
    printed = subprocess.run(["c++filt", *instances], check=True, capture_output=True, text=True).stdout.splitlines()
    assert {function_key(name).key for name in instances + printed} == {"std::vector::push_back"}


@pytest.mark.parametrize("text", ["main" + "(/ " * 1500, "f<" * 15_000, "a[" * 1500 + "(x)", "g({" * 800 + "})" * 799])
def test_unbalanced_text_takes_time_by_its_length(text: str) -> None:
    """With a search to the end for every bracket, each would take seconds or minutes."""
    assert function_key(text).key == text
