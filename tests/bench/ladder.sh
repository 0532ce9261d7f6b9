#!/bin/bash
# The main job against the best plain way: one ffmpeg process that decodes once, splits, and encodes
# every rendition and the audio once. 60 s of 1080p30, same ladder and encoder settings, rounds
# interleaved, medians, ratios; machines drift, so only what was measured side by side counts.
#
#     tests/bench/ladder.sh                                 the table goes to stdout; exit 1 when an aim is missed
#     ROUNDS=1 LENGTH=8 FRAMES=20 tests/bench/ladder.sh     in short: to see that it works
#
# ROUNDS: of each run. LENGTH: of the film, seconds. FRAMES: one-frame chunks, more than ten.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
rounds=${ROUNDS:-3} length=${LENGTH:-60} few=10 many=${FRAMES:-60}
film=film-$length.mp4 long_gop=long-gop-$length.mp4

# Smooth and sharp motion under a little grain, so that the encoder has what films give it.
film() { # FILE SECONDS GOP
    [ -s "$work/$1" ] && return
    note "making $1"
    ffmpeg -nostdin -v error -y -filter_complex "
        gradients=size=1920x1080:rate=30:duration=$2:speed=0.02:nb_colors=6:seed=7[back];
        testsrc2=size=960x540:rate=30:duration=$2[card];
        [back][card]overlay=x='480+400*sin(t)':y='270+200*cos(t*1.3)',noise=alls=5:allf=t:all_seed=7,format=yuv420p[v];
        sine=frequency=440:sample_rate=48000:duration=$2,aformat=channel_layouts=stereo[a]" \
        -map '[v]' -map '[a]' -c:v libx264 -preset veryfast -crf 20 -g "$3" -keyint_min "$3" -sc_threshold 0 \
        -c:a aac -b:a 160k "$work/part.mp4"
    mv "$work/part.mp4" "$work/$1"
}

heights=(1080 720 480 360) widths=(1920 1280 854 640)
rates=(5000 2800 1200 700)

by_ffmpeg() { # INPUT OUTDIR [PERCENT]: prints the command, one word a line; PERCENT of the bit rates
    local i rate percent=${3:-100} graph='[0:v]split=4[s0][s1][s2][s3];[s0]null[v0]' maps=() options=()
    for i in 1 2 3; do graph+=";[s$i]scale=${widths[i]}:${heights[i]}:flags=bicubic[v$i]"; done
    for i in 0 1 2 3; do
        maps+=(-map "[v$i]")
        rate=$((rates[i] * percent / 100))
        options+=("-b:v:$i" "${rate}k" "-maxrate:v:$i" "$((rate * 11 / 10))k" "-bufsize:v:$i" "$((rate * 2))k")
    done
    printf '%s\n' ffmpeg -nostdin -v error -y -i "$1" -filter_complex "$graph" "${maps[@]}" -map 0:a \
        -c:v libx264 -preset veryfast -profile:v high "${options[@]}" -g 60 -keyint_min 60 -sc_threshold 0 \
        -c:a aac -b:a 128k -ac 2 -f hls -hls_time 4 -hls_playlist_type vod -hls_segment_type fmp4 \
        -hls_flags independent_segments -master_pl_name master.m3u8 \
        -var_stream_map 'v:0,agroup:a v:1,agroup:a v:2,agroup:a v:3,agroup:a a:0,agroup:a' "$2/%v/index.m3u8"
}

by_us() { # INPUT OUTDIR [ARG...]
    printf '%s\n' "$TRANSCODE" run "$1" -o "$2" --profile "$bench/ladder.yaml" --force --json "${@:3}"
}

side() { # LABEL by_ffmpeg|by_us INPUT [ARG...]
    local command
    rm -rf "${work:?}/$1" && mkdir -p "$work/$1"
    mapfile -t command < <("$2" "$work/$3" "$work/$1" "${@:4}")
    timed "$1" "${command[@]}"
}

report() { # LABEL KEY: a number of the job's report
    grep -oE "\"$2\": *[0-9.]+" "$work/$1.log" | tail -n 1 | grep -oE '[0-9.]+$'
}

# PSNR of a rendition against the source brought to its size.
psnr() { # PLAYLIST INDEX
    ffmpeg -nostdin -v info -i "$1" -i "$work/$film" -lavfi \
        "[1:v]scale=${widths[$2]}:${heights[$2]}:flags=bicubic[b];[0:v][b]psnr" -f null - 2>&1 |
        sed -nE 's/.*PSNR.*average:([0-9.]+).*/\1/p' | tail -n 1
}

kbps() { # FOLDER
    find "$1" -name '*.m4s' -printf '%s\n' | awk -v t="$length" '{s += $1} END {printf "%.0f", s * 8 / 1000 / t}'
}

film "$film" "$length" 60
film "$long_gop" "$length" 300
rm -f "$work"/*.times
for ((i = 0; i < rounds; i++)); do
    side ffmpeg by_ffmpeg "$film"
    side ours by_us "$film"
    side chunk-16s by_us "$film" --chunk 16
    side unchunked by_us "$film" --chunk 86400
    side chunk-4s by_us "$film" --chunk 4
done
side long-gop by_us "$long_gop"

# Chunks of one frame in one session (a frame a second, segments of a second): what more of them
# cost, each; and as one chunk of as many frames, which is the frames' own work. The pictures are of
# the size that keyframes have in films.
for n in $few $many; do
    [ -s "$work/frames-$n.mp4" ] || ffmpeg -nostdin -v error -y -i "$work/$film" -frames:v "$n" -an -vf setpts=N/TB -r 1 \
        -c:v libx264 -preset veryfast -crf 28 -g 1 "$work/frames-$n.mp4"
done
for ((i = 0; i < rounds; i++)); do
    for n in $few $many; do
        for chunk in 1 86400; do
            rm -rf "$work/frames"
            timed "frames-$n-$chunk" "$TRANSCODE" run "$work/frames-$n.mp4" -o "$work/frames" --quiet \
                --profile "$bench/one-frame.yaml" --chunk $chunk --sessions 1
        done
    done
done

a_frame() { # CHUNK COLUMN: ms
    awk -v a="$(median "frames-$many-$1" "$2")" -v b="$(median "frames-$few-$1" "$2")" -v n=$((many - few)) \
        'BEGIN {printf "%.0f", 1000 * (a - b) / n}'
}

note "peak memory"
mapfile -t command < <(by_ffmpeg "$work/$film" "$work/ffmpeg") && memory_ffmpeg=$(peak "${command[@]}")
mapfile -t command < <(by_us "$work/$film" "$work/ours") && memory_ours=$(peak "${command[@]}")

# ffmpeg's PSNR at our bit rate lies on the line through two of its runs, over the rate's logarithm.
note "PSNR"
mapfile -t command < <(by_ffmpeg "$work/$film" "$work/ffmpeg-less" 96)
rm -rf "$work/ffmpeg-less" && mkdir "$work/ffmpeg-less" && timed less "${command[@]}"
psnrs=()
for i in 0 1 2 3; do
    full=$(psnr "$work/ffmpeg/$i/index.m3u8" $i) full_rate=$(kbps "$work/ffmpeg/$i")
    less=$(psnr "$work/ffmpeg-less/$i/index.m3u8" $i) less_rate=$(kbps "$work/ffmpeg-less/$i")
    ours=$(psnr "$work/ours/${heights[i]}p/index.m3u8" $i) our_rate=$(kbps "$work/ours/${heights[i]}p")
    psnrs+=("$(awk -v f="$full" -v l="$less" -v o="$ours" -v fr="$full_rate" -v lr="$less_rate" -v r="$our_rate" \
        'BEGIN {printf "%.3f", f + (l - f) * log(r / fr) / log(lr / fr) - o}') $full dB at $full_rate kb/s, $less at $less_rate; ours $ours at $our_rate")
done

echo
echo "$length s of 1080p30 to ${heights[*]} and audio; $(nproc) cores; $rounds rounds; $(ffmpeg -version | sed -n '1s/ Copyright.*//p')"
against() { # WHAT AIM LABEL BASE COLUMN
    local a b
    a=$(median "$3" "$5") b=$(median "$4" "$5")
    row "$1" "$(ratio "$a" "$b")" "$2" "$a s / $b s"
}
against "wall time / one ffmpeg process" 0.95 ours ffmpeg 1
against "CPU time / one ffmpeg process" 1.00 ours ffmpeg 2
row "peak memory / one ffmpeg process" "$(ratio "$memory_ours" "$memory_ffmpeg")" 1.3 "$memory_ours MiB / $memory_ffmpeg MiB"
against "CPU time with 16 s chunks / unchunked" 1.03 chunk-16s unchunked 2
against "CPU time with 4 s chunks / unchunked" 1.06 chunk-4s unchunked 2
row "decoded / source frames, 2 s source GOPs" "$(report ours waste)" 1.05
row "decoded / source frames, 10 s source GOPs" "$(report long-gop waste)" 1.05
for column in 1 2; do
    own=$(a_frame 86400 $column) all=$(a_frame 1 $column) what=(wall CPU) aims=(60 50)
    row "what a chunk costs in a warm session, ms ${what[column - 1]}" $((all - own)) "${aims[column - 1]}" \
        "a one-frame chunk $all ms, of which the frame's own $own"
done
for i in 0 1 2 3; do
    row "PSNR below ffmpeg's at our bit rate, ${heights[i]}p, dB" "${psnrs[i]%% *}" 0.1 "${psnrs[i]#* }"
done
exit $((missed > 0))
