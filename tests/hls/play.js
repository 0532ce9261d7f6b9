// Witness of playback: Chromium with hls.js plays the result as a viewer's browser would.
//
//     node play.js DIR      DIR holds master.m3u8; CHROMIUM names another browser
//
// Shown: playback advances; every level can be selected and is then the one on screen; playback
// crosses every join between segments without a stall and the buffer holds no hole; sound is
// decoded where there is a sound track; the end comes where the playlist says; hls.js reports no
// error on the way.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import {createRequire} from 'node:module';
import {chromium} from 'playwright-core';

const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const dir = path.resolve(process.argv[2]);
const hlsjs = createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js');
const types = {'.m3u8': 'application/vnd.apple.mpegurl', '.html': 'text/html', '.js': 'text/javascript',
    '.m4s': 'video/iso.segment', '.mp4': 'video/mp4', '.ts': 'video/mp2t'};
const misses = [];
let isTs = false;

// Loopback only, and only what lies beneath DIR.
const server = http.createServer((request, response) => {
    const name = new URL(request.url, 'http://localhost').pathname;
    const file = name === '/' ? path.join(here, 'page.html') : name === '/hls.js' ? hlsjs
        : path.join(dir, path.normalize(name));
    if (name === '/favicon.ico' || !fs.existsSync(file)) {
        if (name !== '/favicon.ico')
            misses.push(name);
        response.writeHead(404).end();
        return;
    }
    isTs ||= file.endsWith('.ts');
    response.writeHead(200, {'content-type': types[path.extname(file)] ?? 'application/octet-stream'});
    fs.createReadStream(file).pipe(response);
});
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));

const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
        '--disable-background-networking', '--disable-component-update', '--disable-sync',
        '--autoplay-policy=no-user-gesture-required', '--mute-audio'],
});

try {
    const page = await browser.newPage();
    page.setDefaultTimeout(60_000);
    page.on('pageerror', error => misses.push(`page: ${error.message}`));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);

    // Everything below runs in the page; wait() polls there, so that nothing is missed in between.
    await page.evaluate(() => {
        window.errors = [];
        window.wait = async (what, condition, seconds = 20) => {
            const end = performance.now() + 1000 * seconds;
            while (!condition()) {
                if (performance.now() > end)
                    throw new Error(`${what}: not within ${seconds} s; at ${video.currentTime.toFixed(3)} s, ` +
                        `level ${hls.currentLevel}, errors ${JSON.stringify(errors)}`);
                await new Promise(resolve => setTimeout(resolve, 20));
            }
        };
        window.advance = async (what, seconds) => {
            const from = video.currentTime;
            await wait(what, () => video.currentTime >= from + seconds || video.ended);
        };
        window.hls = new Hls({startLevel: 0, maxBufferLength: 8, enableWorker: false});
        hls.on(Hls.Events.ERROR, (_, data) => errors.push(
            `${data.type} ${data.details}${data.fatal ? ' fatal' : ''} at ${video.currentTime.toFixed(3)} s` +
            (data.frag ? `, ${data.frag.type} level ${data.frag.level} segment ${data.frag.sn}` : '') +
            (data.error ? `: ${data.error.message}` : '')));
        hls.loadSource('/master.m3u8');
        hls.attachMedia(video);
        hls.on(Hls.Events.MANIFEST_PARSED, () => video.play());
    });

    const played = await page.evaluate(async () => {
        await wait('start', () => video.currentTime > 0.3);
        await advance('first second', 1);
        return {duration: video.duration, levels: hls.levels.length, audio: hls.audioTracks.length};
    });

    // A level's segments replace those in the buffer; the decoder then shows its size.
    const seen = await page.evaluate(async () => {
        const seen = [];
        for (const [i, level] of hls.levels.entries()) {
            video.currentTime = 0.1;
            hls.currentLevel = i;
            await wait(`level ${i}`, () => hls.currentLevel === i && !video.seeking &&
                (!level.width || (video.videoWidth === level.width && video.videoHeight === level.height)));
            await advance(`level ${i}`, 0.5);
            seen.push(`${video.videoWidth}x${video.videoHeight}`);
        }
        return seen;
    });

    const joins = await page.evaluate(async () => {
        const details = hls.levels[hls.currentLevel].details;
        for (const fragment of details.fragments.slice(1)) {
            video.currentTime = fragment.start - 0.3;
            await wait(`seek to ${fragment.start}`, () => !video.seeking && video.readyState >= 3);
            await advance(`join at ${fragment.start}`, Math.min(0.6, video.duration - video.currentTime - 0.05));
            const holes = [];
            for (let i = 1; i < video.buffered.length; i++)
                holes.push([video.buffered.end(i - 1), video.buffered.start(i)]);
            const hole = holes.find(([a, b]) => Math.abs(a - fragment.start) < 0.2 && b - a < 0.5);
            if (hole)
                throw new Error(`a hole in the buffer at ${hole}`);
        }
        return details.fragments.length - 1;
    });

    const end = await page.evaluate(async () => {
        video.currentTime = Math.max(0, video.duration - 0.7);
        if (video.paused)
            await video.play();
        await wait('the end', () => video.ended);
        return {at: video.currentTime, audio: video.webkitAudioDecodedByteCount,
            video: video.webkitVideoDecodedByteCount, errors};
    });

    // From TS, hls.js makes MP4 by itself, and stumbles over the first frames of whatever TS with
    // separate audio it gets (ffmpeg's own too): not fatal, and only at the very start.
    const stumble = /^mediaError (bufferAppendNoProgress|bufferSeekOverHole) at 0\.[01]/;
    const errors = end.errors.filter(error => !(isTs && stumble.test(error) && !/ fatal /.test(error)));
    assert.deepEqual(errors, [], 'hls.js reports errors');
    assert.deepEqual(misses, [], 'requests without an answer');
    assert.ok(Math.abs(end.at - played.duration) < 0.1, `ended at ${end.at} of ${played.duration}`);
    assert.ok(played.levels > 0);
    if (played.audio > 0)
        assert.ok(end.audio > 0, 'no sound was decoded');
    console.log(`played ${played.duration.toFixed(3)} s, levels ${seen.join(' ')}, ${joins} joins, ` +
        `${played.audio} audio tracks`);
} catch (error) {
    console.log(error.message);
    process.exitCode = 1;
} finally {
    await browser.close();
    server.close();
}
