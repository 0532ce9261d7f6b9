/*
 * What a file's own structure says, read with pread() and no demuxer: what it is when it is no
 * media, and whether it was cut. Every length in it is a claim that is only compared with the
 * file's real size. Pure but for reading fd; any thread.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A reason to refuse the file before any demuxer sees it ("it is an HLS playlist"), or NULL. */
const char *structure_refuse(int fd, int64_t size);

/* Why an MP4/MOV file cannot be opened, in a person's words, or NULL when this does not know. */
const char *structure_explain_mp4(int fd, int64_t size);

/* Whether the container (libavformat's demuxer name) shows that the end of the file is missing;
 * fills reason then. False where the format cannot show it: a transport stream cut at a packet, a
 * program stream, raw audio. */
bool structure_is_cut(int fd, int64_t size, const char *container, char *reason, size_t n);

/* One table of an MP4/MOV file's index. */
struct structure_table {
    int track;       /* counted from 0 in the order of the file, as libavformat counts streams */
    int64_t type_at; /* the byte where the four letters of its box's type begin */
};

/* The tables in which each track tells where its samples lie, in ascending order; what a track *is*
 * lies elsewhere. Caller frees *ret. Returns how many; 0 where there are none, or so many boxes
 * that it is not worth it. */
size_t structure_mp4_tables(int fd, int64_t size, struct structure_table **ret);
