#!/bin/sh
# usage: build.sh OUTPUT [FLAG...]
# Compiles the program with $CXX (default g++) and the given flags, and moves it to OUTPUT when it is complete.
set -eu
export LC_ALL=C

output=$1
shift
sources=$(cd "$(dirname "$0")" && pwd)
objects=$(mktemp -d "$output.XXXXXX")
trap 'rm -rf "$objects"' EXIT INT TERM

# Paths in the debug information do not depend on where the checkout lies.
set -- -std=c++20 -ffile-prefix-map="$sources=epoch_cpp" -ffile-prefix-map="$objects=build" "$@"
ls "$sources" | sed -n 's/\.cpp$//p' |
    xargs -P 2 -I '{}' "${CXX:-g++}" "$@" -c "$sources/{}.cpp" -o "$objects/{}.o"
"${CXX:-g++}" "$@" -Wl,--build-id "$objects"/*.o -o "$objects/program"
mv "$objects/program" "$output"
