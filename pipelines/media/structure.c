#include "pipelines/media/structure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/strbuf.h"

/* Up to n bytes at `at`; returns how many there are. */
static size_t bytes_at(int fd, int64_t at, void *buf, size_t n)
{
    ssize_t got = at < 0 ? 0 : pread(fd, buf, n, at);
    return got > 0 ? (size_t)got : 0;
}

static uint64_t be(const uint8_t *p, int n)
{
    uint64_t v = 0;
    while (n--)
        v = v << 8 | *p++;
    return v;
}

static uint32_t le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* ---- what is no media ---- */

static const struct {
    const char *start, *reason;
} texts[] = {
    {"#EXTM3U", "it is an HLS playlist, which names other files"},
    {"ffconcat", "it is a concat script, which names other files"},
    {"<!DOCTYPE html", "it is a web page"},
    {"<html", "it is a web page"},
    {"<MPD", "it is a DASH manifest, which names other files"},
    {"<?xml", "it is an XML document"},
    {"[playlist]", "it is a playlist, which names other files"},
    {"{", "it is a JSON document"},
    {"%PDF", "it is a PDF document"},
    {"PK\x03\x04", "it is a ZIP archive"},
    {"\x1f\x8b", "it is a gzip archive"},
    {"\x7f"
     "ELF",
     "it is a program"},
    {"\x89PNG", "it is a picture (PNG)"},
    {"\xff\xd8\xff", "it is a picture (JPEG)"},
    {"GIF8", "it is a picture (GIF)"},
};

const char *structure_refuse(int fd, int64_t size)
{
    char head[64] = "";
    if (size == 0)
        return "the file is empty";
    bytes_at(fd, 0, head, sizeof head - 1);
    const char *p = head;
    if (!strncmp(p, "\xef\xbb\xbf", 3)) /* byte order mark */
        p += 3;
    while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
        p++;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strncasecmp(p, texts[i].start, strlen(texts[i].start)))
            return texts[i].reason;
    return NULL;
}

/* ---- MP4 boxes ---- */

struct box {
    int64_t at, size; /* size: with header; to the end of the file where the box says 0 */
    int head;         /* bytes of the header */
    char type[5];
};

static bool next_box(int fd, int64_t file_size, int64_t at, struct box *ret)
{
    uint8_t head[16];
    size_t got = bytes_at(fd, at, head, sizeof head);
    if (got < 8)
        return false;
    uint64_t size = be(head, 4);
    if (size == 1 && got == 16)
        size = be(head + 8, 8);
    else if (size == 0)
        size = (uint64_t)(file_size - at);
    if (size < 8 || size > INT64_MAX / 2)
        return false;
    *ret = (struct box){.at = at, .size = (int64_t)size, .head = be(head, 4) == 1 ? 16 : 8};
    memcpy(ret->type, head + 4, 4);
    return true;
}

static bool box_contains(int fd, const struct box *b, const char *word)
{
    enum { MOST = 4 << 20 };
    size_t n = b->size < MOST ? (size_t)b->size : MOST;
    cleanup(free_ptr) char *buf = malloc(n);
    return buf && memmem(buf, bytes_at(fd, b->at, buf, n), word, strlen(word)) != NULL;
}

const char *structure_explain_mp4(int fd, int64_t size)
{
    bool has_ftyp = false, has_data = false, has_moov = false;
    struct box b;
    for (int64_t at = 0; next_box(fd, size, at, &b); at += b.size) {
        has_ftyp |= !strcmp(b.type, "ftyp");
        has_data |= !strcmp(b.type, "mdat") || !strcmp(b.type, "moof");
        if (strcmp(b.type, "moov") != 0)
            continue;
        has_moov = true;
        if (box_contains(fd, &b, "encv") || box_contains(fd, &b, "enca"))
            return "it is encrypted (DRM)";
        if (b.at + b.size > size)
            return "its index (moov) is cut off: the file is incomplete";
    }
    if ((has_ftyp || has_data) && !has_moov)
        return "its index (moov) is missing: the file is incomplete";
    return NULL;
}

/* Whole files may claim an mdat longer than they are, as recorders leave it; the samples' own
 * places are checked elsewhere (input.c). A fragment's header or index has no such excuse. */
static bool is_mp4_cut(int fd, int64_t size, char *reason, size_t n)
{
    struct box b;
    for (int64_t at = 0; next_box(fd, size, at, &b); at += b.size)
        if (b.at + b.size > size && strcmp(b.type, "mdat") != 0) {
            snprintf(reason, n, "its last box (%s) ends at byte %lld, the file at %lld", b.type,
                     (long long)(b.at + b.size), (long long)size);
            return true;
        }
    return false;
}

/* The boxes of the index, from the outside in, and which of the innermost are listed. The times of
 * samples (stts) are not: they are counts of equal ones, and a track without them is to libavformat
 * a fragmented one, for which it leaves the edit lists of all tracks aside. */
static const char index_path[][5] = {"moov", "trak", "mdia", "minf", "stbl"};
static const char index_tables[][5] = {"stss", "stps", "stsc", "stsz", "stz2", "stco",
                                       "co64", "ctts", "cslg", "sdtp", "sbgp", "sgpd"};

enum { INDEX_DEPTH = sizeof index_path / sizeof *index_path, INDEX_BOXES_MAX = 10000 };

struct index_walk {
    int fd, boxes, track;
    struct structure_table *tables;
    size_t n;
};

static void add_table(struct index_walk *w, const struct box *b)
{
    for (size_t i = 0; i < sizeof index_tables / sizeof *index_tables; i++)
        if (!strcmp(b->type, index_tables[i])) {
            w->tables = xrealloc_array(w->tables, w->n + 1, sizeof *w->tables);
            w->tables[w->n++] = (struct structure_table){w->track, b->at + 4};
        }
}

/* The boxes from `at` to `end`, which lie in one of depth - 1. */
static void walk_index(struct index_walk *w, int64_t at, int64_t end, int depth)
{
    struct box b;
    for (; w->boxes < INDEX_BOXES_MAX && at < end && next_box(w->fd, end, at, &b); at += b.size) {
        w->boxes++;
        if (b.size > end - at)
            return;
        if (depth == INDEX_DEPTH) {
            add_table(w, &b);
        } else if (!strcmp(b.type, index_path[depth])) {
            walk_index(w, at + b.head, at + b.size, depth + 1);
            w->track += depth == 1;
            if (depth == 0)
                return; /* of several indexes the first counts */
        }
    }
}

size_t structure_mp4_tables(int fd, int64_t size, struct structure_table **ret)
{
    struct index_walk w = {.fd = fd};
    walk_index(&w, 0, size, 0);
    if (w.boxes == INDEX_BOXES_MAX)
        w.n = 0;
    *ret = w.tables;
    return w.n;
}

/* ---- Matroska elements ---- */

enum { SEGMENT = 0x18538067 };

struct element {
    uint64_t id;
    int64_t body, size; /* size < 0: unknown (live) */
};

static bool next_element(int fd, int64_t at, struct element *ret)
{
    uint8_t b[12];
    size_t got = bytes_at(fd, at, b, sizeof b);
    if (got < 2 || b[0] == 0)
        return false;
    int id_bytes = __builtin_clz(b[0]) - 23;
    if (id_bytes > 4 || (size_t)id_bytes >= got || b[id_bytes] == 0)
        return false;
    int size_bytes = __builtin_clz(b[id_bytes]) - 23;
    if ((size_t)(id_bytes + size_bytes) > got)
        return false;
    uint64_t mask = ((uint64_t)1 << (7 * size_bytes)) - 1;
    uint64_t size = be(b + id_bytes, size_bytes) & mask;
    *ret = (struct element){.id = be(b, id_bytes),
                            .body = at + id_bytes + size_bytes,
                            .size = size == mask || size > INT64_MAX / 4 ? -1 : (int64_t)size};
    return true;
}

static bool is_matroska_cut(int fd, int64_t file_size, char *reason, size_t n)
{
    struct element x;
    int64_t at = 0;
    while (at < file_size && next_element(fd, at, &x)) {
        if (x.size < 0 && x.id != SEGMENT)
            return false; /* a live cluster: shows nothing */
        if (x.size >= 0 && x.body + x.size > file_size) {
            snprintf(reason, n, "its %s ends at byte %lld, the file at %lld",
                     x.id == SEGMENT ? "segment" : "last element", (long long)(x.body + x.size),
                     (long long)file_size);
            return true;
        }
        at = x.size < 0 ? x.body : x.body + x.size; /* of a live segment look at its elements */
    }
    return false;
}

/* ---- RIFF (AVI, WAV) ---- */

static bool is_riff_cut(int fd, int64_t file_size, char *reason, size_t n)
{
    uint8_t b[8];
    for (int64_t at = 0; bytes_at(fd, at, b, 8) == 8 && !memcmp(b, "RIFF", 4);) {
        int64_t size = le32(b + 4);
        if (size == 0 || size == UINT32_MAX) /* never finalised: says nothing */
            return false;
        if (at + 8 + size > file_size) {
            snprintf(reason, n, "its RIFF chunk ends at byte %lld, the file at %lld",
                     (long long)(at + 8 + size), (long long)file_size);
            return true;
        }
        at += 8 + size + (size & 1);
    }
    return false;
}

/* ---- FLV: every tag is followed by its size ---- */

static bool is_flv_cut(int fd, int64_t file_size, char *reason, size_t n)
{
    uint8_t last[4], tag[4];
    if (bytes_at(fd, file_size - 4, last, 4) != 4)
        return false;
    int64_t tag_size = (int64_t)be(last, 4), at = file_size - 4 - tag_size;
    if (tag_size >= 11 && at >= 9 && bytes_at(fd, at, tag, 4) == 4 &&
        (int64_t)be(tag + 1, 3) + 11 == tag_size)
        return false;
    snprintf(reason, n, "its last tag is not whole");
    return true;
}

/* ---- transport streams: whole packets only. A cut between two packets cannot be seen. ---- */

static bool is_ts_cut(int fd, int64_t file_size, char *reason, size_t n)
{
    static const int sizes[] = {188, 192, 204};
    uint8_t head[2 * 204 + 5];
    size_t got = bytes_at(fd, 0, head, sizeof head);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t first = sizes[i] == 192 ? 4 : 0, step = (size_t)sizes[i];
        if (got <= first + 2 * step || head[first] != 0x47 || head[first + step] != 0x47 ||
            head[first + 2 * step] != 0x47)
            continue;
        int64_t rest = file_size % sizes[i];
        if (rest)
            snprintf(reason, n, "its last packet has %lld of %d bytes", (long long)rest, sizes[i]);
        return rest != 0;
    }
    return false;
}

static const struct {
    const char *container;
    bool (*is_cut)(int fd, int64_t size, char *reason, size_t n);
} checks[] = {
    {"mov,mp4,m4a,3gp,3g2,mj2", is_mp4_cut},
    {"matroska,webm", is_matroska_cut},
    {"avi", is_riff_cut},
    {"wav", is_riff_cut},
    {"flv", is_flv_cut},
    {"mpegts", is_ts_cut},
};

bool structure_is_cut(int fd, int64_t size, const char *container, char *reason, size_t n)
{
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (!strcmp(container, checks[i].container))
            return checks[i].is_cut(fd, size, reason, n);
    return false;
}
