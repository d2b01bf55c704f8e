"""Producers as GCC, clang and rustc write them into debug information."""

from __future__ import annotations

import pytest

from profiler.analysis.quality.toolchain_names import distinguishing_names

GCC = "GNU C++17 12.2.0 -mtune=generic -march=x86-64 -g -O2"
LTO = "GNU GIMPLE 12.2.0 -g -O2 -fltrans"
AS = "GNU AS 2.40"


@pytest.mark.parametrize(
    ("arms", "shown"),
    [
        ((GCC, f"{GCC} -flto"), ("GNU C++17 12.2.0", "GNU C++17 12.2.0 -flto")),
        ((GCC, GCC.replace("-O2", "-O3")), ("GNU C++17 12.2.0 -O2", "GNU C++17 12.2.0 -O3")),
        ((GCC, GCC.replace("12.2.0", "13.1.0")), ("GNU C++17 12.2.0", "GNU C++17 13.1.0")),
        ((f"{AS}; {GCC}", f"{AS}; {GCC} -flto; {LTO}"), ("GNU C++17 12.2.0", "GNU C++17 12.2.0 -flto; GNU GIMPLE 12.2.0")),
        ((f"{AS}; {GCC}", AS), ("GNU C++17 12.2.0", "")),
        (("GNU C17 12.2.0 -g -O2", "GNU C17 12.2.0 -O2 -g"), ("GNU C17 12.2.0 -g -O2", "GNU C17 12.2.0 -O2 -g")),
        (
            ("clang LLVM (rustc version 1.95.0)", "clang LLVM (rustc version 1.97.0)"),
            ("clang LLVM (rustc version 1.95.0)", "clang LLVM (rustc version 1.97.0)"),
        ),
    ],
)
def test_only_what_differs_is_shown(arms: tuple[str, str], shown: tuple[str, str]) -> None:
    assert distinguishing_names(({arms[0]}, {arms[1]})) == ((shown[0],), (shown[1],))


def test_an_arm_of_two_toolchains() -> None:
    assert distinguishing_names(({GCC, f"{GCC} -flto"}, {GCC})) == (
        ("GNU C++17 12.2.0", "GNU C++17 12.2.0 -flto"),
        ("GNU C++17 12.2.0",),
    )
