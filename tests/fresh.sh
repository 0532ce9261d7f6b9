#!/bin/bash
# A newcomer's first hour: makes a bare Debian 12 and a bare Debian 13 and runs the README's two
# commands in each. On 12 as root, who gets the packages installed; on 13 as an ordinary user, who
# is told what to install. Inside, tests/run.sh runs its --quick set, to keep this short. The last
# line is "N passed, N failed, N skipped".
#
#     tests/fresh.sh [bookworm|trixie]...
#
# Needs root and debootstrap. The mirror, and whatever proxy or certificates lead to it, are those
# of this machine's own apt. Bare trees and downloaded packages are kept in the cache; each run
# unpacks a new tree. All mounts are made in a mount namespace of their own and die with it.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/transcode-fresh
limit=1500 # seconds for one command inside

reason_to_skip() {
    [ "$(id -u)" -eq 0 ] || { echo "only root can make a tree" && return; }
    command -v debootstrap >/dev/null || { echo "debootstrap is not here" && return; }
    unshare --mount --pid --fork true 2>/dev/null || { echo "no namespaces here" && return; }
    [ -n "$mirror" ] || { echo "this machine's apt names no Debian mirror" && return; }
    /usr/lib/apt/apt-helper download-file "$mirror/dists/$1/InRelease" "$scratch/InRelease" \
        >/dev/null 2>&1 || echo "the package mirror is away"
}

# The archive that this machine's own Debian comes from; the security one lies beside it elsewhere.
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    sed -nE 's,^((https?|file|copy):.*/debian)/? main$,\1,p' | head -n 1)

bootstrap() { # SUITE: the bare tree as a tar file in the cache
    local tar="$cache/$1.tar" proxy=
    [ -n "$(find "$tar" -mtime -30 2>/dev/null)" ] && return
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    rm -rf "$cache/$1.part" && mkdir -p "$cache"
    http_proxy=${http_proxy:-$proxy} debootstrap --variant=minbase "$1" "$cache/$1.part" "$mirror" \
        >"$scratch/debootstrap.log" 2>&1 || { tail -n 5 "$scratch/debootstrap.log" && return 1; }
    tar -C "$cache/$1.part" --one-file-system -cf "$tar.part" . && mv "$tar.part" "$tar"
    rm -rf "$cache/$1.part"
}

unpack() { # SUITE: a new tree with a way to the mirror, a user and our sources
    local suite=$1 file
    bootstrap "$suite"
    rm -rf "$tree" && mkdir -p "$tree" "$cache/$suite.debs/partial"
    tar -C "$tree" -xf "$cache/$suite.tar"
    echo "deb $mirror $suite main" >"$tree/etc/apt/sources.list"
    apt-config dump | grep -E '^Acquire::(https?|ftp|Retries|Check-|ForceIPv)' \
        >"$tree/etc/apt/apt.conf.d/90host" || true
    for file in /etc/resolv.conf /etc/hosts /etc/apt/auth.conf /etc/apt/auth.conf.d /etc/ssl/certs/ca-certificates.crt; do
        [ ! -e "$file" ] || { mkdir -p "$tree${file%/*}" && cp -rL "$file" "$tree${file%/*}/"; }
    done
    # No service starts inside, and nothing waits for the disk.
    printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d"
    chmod +x "$tree/usr/sbin/policy-rc.d"
    echo force-unsafe-io >"$tree/etc/dpkg/dpkg.cfg.d/unsafe-io"
    inside root useradd --create-home newcomer
    mkdir "$tree/$sources"
    (cd "$root" && { git archive HEAD 2>/dev/null || tar -c --exclude='./build*' --exclude=node_modules .; }) |
        tar -C "$tree/$sources" -x
    inside root chown -R newcomer: "$sources"
}

# Runs a command in the tree, in the sources once they are there; network=--net takes the network away.
inside() { # USER COMMAND...
    # shellcheck disable=SC2016
    timeout --kill-after=10 "$limit" unshare --mount --pid ${network:+"$network"} --fork --kill-child bash -ec '
        tree=$1 debs=$2 sources=$3 user=$4
        shift 4
        mount --bind /dev "$tree/dev"
        mount -t tmpfs tmpfs "$tree/dev/shm"
        mount -t proc proc "$tree/proc"
        mount -t tmpfs tmpfs "$tree/run"
        mount --bind "$debs" "$tree/var/cache/apt/archives"
        # Not exec: bash stays as the init that reaps orphans.
        env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
            ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
            chroot "$tree" runuser -u "$user" -- \
            sh -c "cd \"\$0\" 2>/dev/null; \"\$@\"" "$sources" "$@" || exit $?' \
        _ "$tree" "$cache/$suite.debs" "$sources" "$@" </dev/null
}

# Runs one of the two commands. Someone who may not install packages is told how, and does that.
command_of_readme() { # USER COMMAND...
    local user=$1 advice
    shift
    grep -qE "^ *$1( |\$)" "$root/README.md" || fail "README.md does not tell to run $1"
    if [ "$user" != root ]; then
        ! inside "$user" "$@" >advice 2>&1 || fail "$1 needed no package on a bare system"
        advice=$(sed -nE 's/^ *sudo (apt-get install .*)/\1/p' advice)
        [ -n "$advice" ] || { cat advice && fail "$1 does not say what to install"; }
        inside root sh -c "apt-get update -q && $advice" >apt.log 2>&1 || { tail -n 20 apt.log && exit 1; }
    fi
    inside "$user" "$@" >log 2>&1 || { sed 's/^/    | /' log && exit 1; }
    tail -n 1 log | sed 's/^/    /'
}

quickstart() { # USER
    command_of_readme "$1" samples/quickstart.sh
    grep -q 'master\.m3u8' log || fail "it does not say where the result is"
    inside "$1" ffprobe -v error -show_entries stream=codec_name -of csv=p=0 \
        build/quickstart/hls/master.m3u8 >streams || fail "ffprobe cannot read its result"
    says h264 streams
    says aac streams
}

# The second time nothing is missing, so nothing may ask the network: there is none.
quickstart_again() { # USER
    local start=$SECONDS
    network=--net inside "$1" samples/quickstart.sh >log 2>&1 || { tail -n 30 log && exit 1; }
    echo "    $((SECONDS - start)) s"
    [ $((SECONDS - start)) -le 40 ] || fail "a second run must be done within 20 s, 40 s at worst"
}

run_tests() { # USER
    command_of_readme "$1" tests/run.sh --quick
    tail -n 1 log | grep -qE '^[0-9]+ passed, 0 failed, [0-9]+ skipped$' || fail "no closing line"
}

cd "$root" || exit 2
[ -z "$(git status --porcelain 2>/dev/null)" ] ||
    echo "note: what is not committed is not in the trees"
[ $# -gt 0 ] || set -- bookworm trixie
for suite in "$@"; do
    tree=$cache/$suite.tree sources=/srv/transcode
    user=root
    [ "$suite" = bookworm ] || user=newcomer
    reason=$(reason_to_skip "$suite")
    run() { # NAME FUNCTION ARG...: skipped with the reason, and when the one before failed
        [ ${#failed[@]} -eq 0 ] || [ "${failed[-1]%%:*}" != "$suite" ] || reason="what it needs failed"
        if [ -n "$reason" ]; then check "$suite: $1" skip "$reason"; else check "$suite: $1" "${@:2}"; fi
    }
    run "a bare tree" unpack "$suite"
    run "quickstart as $user" quickstart "$user"
    run "quickstart again" quickstart_again "$user"
    run "tests/run.sh --quick as $user" run_tests "$user"
    rm -rf --one-file-system "$tree"
done
echo "$passed passed, ${#failed[@]} failed, ${#skipped[@]} skipped"
[ ${#failed[@]} -eq 0 ]
