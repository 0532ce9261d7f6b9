#!/bin/bash
# Memory must not grow with the length of the film: peak of the whole process tree on one hour
# against that on two minutes, small pictures, so that what could grow would show; and by how much the
# private memory of each kind of process grows with an hour.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

[ -s "$work/2min.mp4" ] || ffmpeg -nostdin -v error -y -f lavfi -i testsrc2=size=320x180:rate=25:duration=120 \
    -f lavfi -i sine=sample_rate=48000:duration=120 -c:v libx264 -preset ultrafast -bf 2 -g 50 -pix_fmt yuv420p \
    -c:a aac "$work/2min.mp4"
[ -s "$work/1h.mp4" ] || ffmpeg -nostdin -v error -y -stream_loop 29 -i "$work/2min.mp4" -c copy "$work/1h.mp4"

# "ROLE<tab>KIB": the most that one process of each role had for itself; a session's role is its task.
roles() {
    awk '$3 == "transcode:" || $3 == "redis-server" {
        role = $3 == "transcode:" ? $4 : $3
        if (role == "session") { split($NF, task, "/"); role = task[2] ? "session, " task[2] : "" }
        sub(/,$/, "", role)
        if (role != "" && $2 > max[role]) max[role] = $2
    } END {for (role in max) print role "\t" max[role]}' "$work/peak.samples" | sort
}

declare -A mib
for clip in 2min 1h; do
    note "$clip"
    mib[$clip]=$(peak "$TRANSCODE" run "$work/$clip.mp4" -o "$work/$clip" --force --quiet \
        --profile "$root/tests/e2e/small.yaml" --chunk 30)
    roles >"$work/$clip.roles"
done
echo
join -t $'\t' "$work/2min.roles" "$work/1h.roles" | awk -F '\t' '
    {printf "%-20s %6.1f MiB, %+.1f MiB an hour\n", $1, $2 / 1024, ($3 - $2) / 1024 * 60 / 58}'
row "peak memory on 1 h / on 2 min" "$(ratio "${mib[1h]}" "${mib[2min]}")" 1.10 "${mib[1h]} MiB / ${mib[2min]} MiB"
exit $((missed > 0))
