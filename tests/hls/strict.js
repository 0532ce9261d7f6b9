// Witness of the playlists: hls-parser in strict mode, and what the parser cannot know: that every
// file is there and none besides, that renditions are aligned, that what the master declares is
// what the bytes say.
//
//     node strict.js DIR      DIR holds master.m3u8
//
// Prints one line a fault and exits 1, or one line of summary.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import HLS from 'hls-parser';

HLS.setOptions({strictMode: true, silent: true});
const dir = path.resolve(process.argv[2]);
const faults = [];
const check = (ok, text) => ok || faults.push(text);
const named = new Set(['master.m3u8']);

const parse = name => {
    try {
        return HLS.parse(fs.readFileSync(path.join(dir, name), 'utf8'));
    } catch (error) {
        console.log(`${name}: ${error.message}`);
        process.exit(1);
    }
};

const size = name => {
    named.add(name);
    const file = path.join(dir, name);
    const bytes = fs.existsSync(file) ? fs.statSync(file).size : 0;
    check(bytes > 0, `${name}: is named by a playlist but missing or empty`);
    return bytes;
};

// RFC 8216, 4.1: the largest rate of any run of segments that lasts 0.5 to 1.5 target durations.
const peak = (segments, target) => {
    let max = 0;
    for (let i = 0; i < segments.length; i++) {
        let bytes = 0;
        let seconds = 0;
        for (let j = i; j < segments.length && seconds <= 1.5 * target; j++) {
            bytes += segments[j].bytes;
            seconds += segments[j].duration;
            if (seconds >= 0.5 * target && seconds <= 1.5 * target)
                max = Math.max(max, 8 * bytes / seconds);
        }
    }
    return max;
};

const load = name => {
    const list = parse(name);
    named.add(name);
    check(!list.isMasterPlaylist, `${name}: is a master playlist`);
    check(list.playlistType === 'VOD', `${name}: EXT-X-PLAYLIST-TYPE is ${list.playlistType}, not VOD`);
    check(list.endlist, `${name}: has no EXT-X-ENDLIST`);
    check(list.independentSegments || master.independentSegments, `${name}: no EXT-X-INDEPENDENT-SEGMENTS`);
    check(list.segments.length > 0, `${name}: names no segment`);
    const folder = path.dirname(name);
    const maps = new Set();
    const segments = list.segments.map((s, i) => {
        check(Math.round(s.duration) <= list.targetDuration,
            `${name}: segment ${i} lasts ${s.duration} s, over the target of ${list.targetDuration} s`);
        check(s.duration > 0, `${name}: segment ${i} lasts ${s.duration} s`);
        check(!s.discontinuity, `${name}: a discontinuity at segment ${i}`);
        if (s.map)
            maps.add(path.join(folder, s.map.uri));
        return {duration: s.duration, bytes: size(path.join(folder, s.uri))};
    });
    check(maps.size <= 1, `${name}: ${maps.size} init segments`);
    maps.forEach(size);
    const seconds = segments.reduce((sum, s) => sum + s.duration, 0);
    const bytes = segments.reduce((sum, s) => sum + s.bytes, 0);
    return {
        name, segments, seconds, init: [...maps][0], target: list.targetDuration,
        peak: peak(segments, list.targetDuration) || 8 * bytes / seconds, average: 8 * bytes / seconds,
    };
};

// avc1.PPCCLL as the init segment's own avcC box has it.
const avc = list => {
    const file = list.init && fs.readFileSync(path.join(dir, list.init));
    const at = file ? file.indexOf('avcC') : -1;
    return at < 0 ? undefined : 'avc1.' + file.subarray(at + 5, at + 8).toString('hex');
};

// Declared must be what was measured: never below it, and not far above.
const rate = (what, declared, measured) => {
    check(declared >= Math.floor(measured), `${what} is ${declared}, but the bytes give ${measured.toFixed(0)}`);
    check(declared <= 1.05 * measured + 1000, `${what} is ${declared}, far above the bytes' ${measured.toFixed(0)}`);
};

const master = parse('master.m3u8');
check(master.isMasterPlaylist, 'master.m3u8: is no master playlist');
check(master.independentSegments, 'master.m3u8: has no EXT-X-INDEPENDENT-SEGMENTS');
check(master.variants.length > 0, 'master.m3u8: has no variant');
const lists = new Map();
const cached = uri => lists.get(uri) ?? lists.set(uri, load(uri)).get(uri);

for (const v of master.variants) {
    const list = cached(v.uri);
    const audio = v.audio.filter(a => a.uri).map(a => cached(a.uri));
    const loudest = key => Math.max(0, ...audio.filter(a => a !== list).map(a => a[key]));
    rate(`${v.uri}: BANDWIDTH`, v.bandwidth, list.peak + loudest('peak'));
    rate(`${v.uri}: AVERAGE-BANDWIDTH`, v.averageBandwidth, list.average + loudest('average'));
    check(v.codecs, `${v.uri}: no CODECS`);
    const codec = avc(list);
    check(!codec || v.codecs.toLowerCase().split(',').includes(codec),
        `${v.uri}: CODECS says ${v.codecs}, the init segment ${codec}`);
    check(audio.length === 0 || /mp4a|opus|ac-3|ec-3|flac/i.test(v.codecs),
        `${v.uri}: CODECS ${v.codecs} leaves the audio out`);
    if (v.resolution) {
        list.isVideo = true;
        check(v.frameRate > 0, `${v.uri}: no FRAME-RATE`);
        check(v.videoRange, `${v.uri}: no VIDEO-RANGE`);
    }
}

// Players change rendition at segment borders: those of all video renditions are the same.
const video = [...lists.values()].filter(l => l.isVideo);
for (const list of video.slice(1)) {
    check(list.segments.length === video[0].segments.length,
        `${list.name}: ${list.segments.length} segments, ${video[0].name} has ${video[0].segments.length}`);
    let a = 0;
    let b = 0;
    for (let i = 0; i < Math.min(list.segments.length, video[0].segments.length) - 1; i++) {
        a += list.segments[i].duration;
        b += video[0].segments[i].duration;
        check(Math.abs(a - b) < 0.001, `${list.name}: segment ${i} ends at ${a}, in ${video[0].name} at ${b}`);
    }
}

const walk = folder => fs.readdirSync(path.join(dir, folder), {withFileTypes: true}).flatMap(entry => {
    const name = path.join(folder, entry.name);
    return entry.isDirectory() ? walk(name) : [name];
});
for (const name of walk('').filter(n => !n.startsWith('.')))
    check(named.has(name), `${name}: no playlist names it`);

faults.forEach(fault => console.log(fault));
if (faults.length > 0)
    process.exit(1);
assert.ok(lists.size > 0);
console.log(`${lists.size} playlists, ${[...lists.values()].reduce((n, l) => n + l.segments.length, 0)} segments, ` +
    `${Math.max(...[...lists.values()].map(l => l.seconds)).toFixed(3)} s`);
