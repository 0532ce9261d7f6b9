#include "pipelines/media/avlog.h"

#include <libavutil/error.h>
#include <libavutil/log.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"

enum { KEPT = 2, LINE = 240 };

/* Of each thread, since encoders are opened side by side: oldest first, "" for none. */
static _Thread_local char kept[KEPT][LINE];

/* The same complaint about every packet is one complaint. */
static void keep(const char *line)
{
    if (strcmp(kept[KEPT - 1], line) != 0) {
        memmove(kept[0], kept[1], sizeof kept - sizeof kept[0]);
        snprintf(kept[KEPT - 1], LINE, "%.*s", LINE - 1, line);
    }
}

static void on_line(void *object, int level, const char *fmt, va_list ap)
{
    if (level > AV_LOG_WARNING && log_level() < LOG_DEBUG)
        return;
    if (level > AV_LOG_VERBOSE)
        return;
    char line[1024];
    int print_prefix = 0; /* "[h264 @ 0x55…]" says nothing to a reader */
    av_log_format_line2(object, level, fmt, ap, line, sizeof line, &print_prefix);
    size_t n = strcspn(line, "\r\n");
    line[n] = 0;
    if (n == 0)
        return;
    log_redact(line);
    if (level <= AV_LOG_ERROR)
        keep(line);
    log_debug("libav: %s", line);
}

static void install(void)
{
    av_log_set_callback(on_line);
}

void avlog_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}

void avlog_clear(void)
{
    memset(kept, 0, sizeof kept);
}

const char *avlog_reason(int averror)
{
    static _Thread_local char text[KEPT * LINE + AV_ERROR_MAX_STRING_SIZE + 16];
    char code[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(averror, code, sizeof code);
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < KEPT; i++)
        if (kept[i][0])
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? "; " : "", kept[i]);
    memset(kept, 0, sizeof kept);
    snprintf(text + n, sizeof text - n, n ? " (%s)" : "%s", code);
    return text;
}
