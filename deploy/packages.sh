# The one list of Debian packages (12 and 13), sourced by whatever builds, tests or shows the
# product. A line: set, package, and, where another source of the same program will do, the program
# whose presence on PATH is enough.
#
#     . deploy/packages.sh
#     packages_need build run || exit 1
#
# shellcheck shell=bash

packages_table='
build   gcc                 cc
build   libc6-dev
build   cmake               cmake
build   ninja-build         ninja
build   pkgconf             pkg-config
build   libavformat-dev
build   libavcodec-dev
build   libavfilter-dev
build   libavutil-dev
build   libffmpeg-nvenc-dev
build   libswscale-dev
build   libswresample-dev
build   libhiredis-dev
build   libjansson-dev
build   libyaml-dev
build   libseccomp-dev
run     redis-server        redis-server
sample  ffmpeg              ffmpeg
test    ffmpeg              ffmpeg
test    libcmocka-dev
test    libx264-dev
test    libx265-dev
test    libsvtav1enc-dev
test    libffmpeg-nvenc-dev
test    procps              ps
test    man-db              man
test    jq                  jq
full    clang               clang
full    libclang-rt-dev
full    clang-format        clang-format
full    shellcheck          shellcheck
full    time
witness chromium            chromium
witness nodejs              node
witness npm                 npm
fresh   debootstrap         debootstrap
'

packages_is_there() { # PACKAGE [PROGRAM]
    [ -n "${2-}" ] && command -v "$2" >/dev/null && return 0
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Prints the packages of the sets that are not there, each once.
packages_missing() { # SET...
    local set package program
    while read -r set package program; do
        [ -n "$set" ] || continue
        case " $* " in *" $set "*) packages_is_there "$package" "$program" || echo "$package" ;; esac
    done <<<"$packages_table" | sort -u
}

# Makes sure that the sets are there: root installs what is missing (and asks no network when
# nothing is), anyone else is told the command and gets 1.
packages_need() { # SET...
    local missing
    mapfile -t missing < <(packages_missing "$@")
    [ ${#missing[@]} -eq 0 ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        echo "missing packages; install them with" >&2
        echo "  sudo apt-get install --no-install-recommends -y ${missing[*]}" >&2
        return 1
    fi
    echo "installing ${missing[*]}"
    apt-get update -q >/dev/null || echo "apt-get update failed; trying the lists that are here" >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" \
        >/dev/null </dev/null && return 0
    echo "apt-get could not install: ${missing[*]}" >&2
    return 1
}
