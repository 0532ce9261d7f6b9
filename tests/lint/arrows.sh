#!/bin/bash
# The arrows of the code map: who may include whom. Our own headers are spelled from the root; the
# big libraries belong to the layer that wraps them.
set -uo pipefail

# folder: what it may include; "-" and a system header prefix: what only it may use.
layers='
common           common
queue            queue common
pipelines/plan   pipelines/plan common
pipelines/media  pipelines/media pipelines/media/kernels pipelines/plan common
pipelines/media/kernels pipelines/media/kernels
worker           worker pipelines/media pipelines/plan queue common
dispatcher       dispatcher pipelines/plan queue common
cli              cli worker dispatcher pipelines/media pipelines/plan queue common
'
owners='
libav       pipelines/media
libsw       pipelines/media
hiredis     queue
yaml.h      common
seccomp     worker
'

layer_of() { # PATH
    case $1 in
    pipelines/*/*) echo "${1%/*}" ;;
    */*) echo "${1%%/*}" ;;
    esac
}

arrows() { # ROOT; prints each fault, returns 1 if there is one
    cd "$1" || return 2
    local file line name layer target faults=0
    local -A may=() owner=()
    while read -r layer name; do [ -z "$layer" ] || may[$layer]=" $name "; done <<<"$layers"
    while read -r name layer; do [ -z "$name" ] || owner[$name]=$layer; done <<<"$owners"
    while IFS=: read -r file line name; do
        file=${file#./} layer=$(layer_of "$file")
        fault() { echo "$file:$line: $*" && faults=$((faults + 1)); }
        if [ -z "${may[$layer]-}" ]; then
            fault "the folder '$layer' is not on the code map"
        elif [[ $name == '"'* ]]; then
            name=${name//\"/} target=$(layer_of "$name")
            [ -f "$name" ] || fault "\"$name\" is not spelled from the root, or missing"
            [[ ${may[$layer]} == *" $target "* ]] || fault "$layer may not include $target ($name)"
        else
            name=${name//[<>]/}
            for prefix in "${!owner[@]}"; do
                [[ $name != "$prefix"* || ${owner[$prefix]} == "$layer" ]] ||
                    fault "only ${owner[$prefix]} may include <$name>"
            done
        fi
    done < <(find . \( -name 'build*' -o -name tests -o -name node_modules -o -name .git \) -prune \
        -o -name '*.[ch]' -exec grep -HnoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*("[^"]*"|<[^>]*>)' {} + |
        sed -E 's/#[[:space:]]*include[[:space:]]*//; s/:[[:space:]]+/:/g')
    return $((faults > 0))
}

self_test() { # each line: FILE INCLUDE, which must be found at fault
    local dir file include
    dir=$(mktemp -d) && trap 'rm -rf "$dir"' RETURN
    while read -r file include; do
        rm -rf "${dir:?}"/* && mkdir -p "$dir/$(dirname "$file")" "$dir/common"
        touch "$dir/common/err.h"
        printf '#include "common/err.h"\n' >"$dir/$file"
        [[ $file == elsewhere/* ]] || (arrows "$dir") || { echo "self-test: a clean $file was found at fault" && return 1; }
        include=${include//\'/}
        if [[ $include == '"'* ]]; then
            local path=${include//\"/}
            mkdir -p "$dir/$(dirname "$path")" && touch "$dir/$path"
        fi
        printf '  #  include %s\n' "$include" >>"$dir/$file"
        ! (arrows "$dir") >/dev/null || { echo "self-test: $include passed in $file" && return 1; }
    done <<'END'
common/a.c "queue/queue.h"
queue/a.c "pipelines/plan/plan.h"
queue/a.c <libavutil/avutil.h>
pipelines/plan/a.h "pipelines/media/probe.h"
pipelines/plan/a.c <libavcodec/avcodec.h>
pipelines/media/a.c "queue/job.h"
dispatcher/a.c "pipelines/media/probe.h"
dispatcher/a.c <libavformat/avformat.h>
worker/agent.c <libavformat/avformat.h>
worker/a.c "cli/verbs.h"
cli/a.c <hiredis/hiredis.h>
common/a.c "err.h"
elsewhere/a.c <stdio.h>
END
}

self_test || exit 1
arrows "$(dirname "$0")/../.."
