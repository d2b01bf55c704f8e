#!/usr/bin/env bash
# Sets up .venv with the pinned packages, after a look at the system packages that recording, building and testing need.
# Missing ones are installed where that is possible without asking (root on Debian or Ubuntu); elsewhere the command that
# installs them is printed, and nothing is changed.  With SLOTSCOPE_ANALYSIS_ONLY=1 only Python is needed.
set -euo pipefail
cd "$(dirname "$0")/.."

analysis_only=${SLOTSCOPE_ANALYSIS_ONLY:-}
stamp=.venv/setup-stamp

find_python() {
    local name
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
}

# One word per missing thing, in the terms of list_packages.
list_missing() {
    local python
    python=$(find_python)
    if [ -z "$python" ]; then
        echo python
    elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        echo venv
    fi
    [ -z "$analysis_only" ] || return 0
    # Ubuntu has a perf that only says which package is missing.
    perf --version >/dev/null 2>&1 || echo perf
    command -v g++ >/dev/null || echo compiler
    command -v readelf >/dev/null || echo binutils
    command -v llvm-symbolizer >/dev/null || echo llvm
    command -v pgrep >/dev/null || echo procps
    # Without their symbols the C library's memmove and malloc have no names.  Only Debian's packaging keeps them apart.
    [ "$(package_manager)" != apt ] || [ -d /usr/lib/debug/.build-id ] || echo libc-symbols
    # Tests skip what these tools would build or measure, and say so; where it costs no question they are installed.
    if [ "$(package_manager)" = apt ] && [ "$(id -u)" = 0 ]; then
        command -v ld.lld >/dev/null || echo lld
        command -v mold >/dev/null || echo mold
        command -v dwz >/dev/null || echo dwz
        command -v eu-strip >/dev/null || echo elfutils
        command -v hyperfine >/dev/null || echo hyperfine
        command -v chromium >/dev/null || echo chromium
        [ -e /usr/include/benchmark/benchmark.h ] || echo google-benchmark
    fi
}

# Package names of what is missing: list_packages MANAGER WORD...
list_packages() {
    local manager=$1 word
    shift
    for word; do
        case $manager:$word in
            apt:python) echo python3 python3-venv ;;
            apt:venv) echo python3-venv ;;
            apt:perf) if [ "$(distribution)" = ubuntu ]; then echo linux-tools-generic; else echo linux-perf; fi ;;
            apt:compiler) echo g++ ;;
            apt:libc-symbols) echo libc6-dbg ;;
            apt:google-benchmark) echo libbenchmark-dev ;;
            dnf:python) echo python3.11 ;;
            dnf:compiler) echo gcc-c++ ;;
            pacman:python | pacman:venv) echo python ;;
            pacman:compiler) echo gcc ;;
            dnf:venv) echo python3 ;;
            dnf:procps | pacman:procps) echo procps-ng ;;
            *) echo "$word" ;;
        esac
    done
}

distribution() {
    sed -n 's/^ID=//p' /etc/os-release 2>/dev/null | tr -d '"'
}

package_manager() {
    local name
    for name in apt-get dnf pacman; do
        if command -v "$name" >/dev/null; then
            echo "${name%-get}"
            return
        fi
    done
}

install_command() {
    local manager=$1
    shift
    case $manager in
        apt) echo "apt-get update && apt-get install -y --no-install-recommends $*" ;;
        dnf) echo "dnf install -y $*" ;;
        pacman) echo "pacman -S --needed $*" ;;
    esac
}

provide_system_packages() {
    local missing manager command
    mapfile -t missing < <(list_missing)
    [ ${#missing[@]} -gt 0 ] || return 0
    manager=$(package_manager)
    if [ -z "$manager" ]; then
        echo "setup: missing: ${missing[*]}; install them (Python must be 3.11 or newer) and try again" >&2
        exit 1
    fi
    mapfile -t packages < <(list_packages "$manager" "${missing[@]}" | tr ' ' '\n')
    command=$(install_command "$manager" "${packages[@]}")
    if [ "$manager" != apt ] || [ "$(id -u)" != 0 ]; then
        echo "setup: missing: ${missing[*]}. Install them and try again:" >&2
        echo "    sudo sh -c '$command'" >&2
        [ -n "$analysis_only" ] || echo "To read recordings only: SLOTSCOPE_ANALYSIS_ONLY=1 make setup" >&2
        exit 1
    fi
    echo "setup: installing ${packages[*]}"
    DEBIAN_FRONTEND=noninteractive sh -c "$command" >.setup.log 2>&1 </dev/null || {
        tail -n 20 .setup.log >&2
        rm -f .setup.log
        echo "setup: this failed: $command" >&2
        exit 1
    }
    rm -f .setup.log
    mapfile -t missing < <(list_missing)
    if [ ${#missing[@]} -gt 0 ]; then
        echo "setup: still missing after the installation: ${missing[*]}; Python must be 3.11 or newer" >&2
        exit 1
    fi
}

# What the state of .venv depends on.
fingerprint() {
    echo "$PWD ${analysis_only:-all}"
    cat pyproject.toml constraints.txt scripts/setup.sh
}

provide_venv() {
    local wanted project=.
    [ -n "$analysis_only" ] || project='.[dev]'
    wanted=$(fingerprint | sha256sum)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && .venv/bin/python -c '' 2>/dev/null; then
        return
    fi
    echo "setup: installing the Python packages into .venv"
    if ! .venv/bin/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        "$(find_python)" -m venv --clear .venv
    fi
    # The build backend is pinned as well, so it is installed first and used without isolation.
    .venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt setuptools
    # compat: a path instead of an import hook, which would cost every start 20 ms.
    .venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-build-isolation \
        --config-settings editable_mode=compat -e "$project"
    echo "$wanted" >"$stamp"
}

provide_system_packages
provide_venv
