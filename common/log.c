#include "common/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/clock.h"

enum { LINE_MAX_BYTES = 4096 };

static const char *const level_names[] = {"error", "warning", "info", "debug"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two below */
static enum log_level threshold = LOG_INFO;
static char current_tag[128];

void log_set_tag(const char *tag)
{
    pthread_mutex_lock(&lock);
    snprintf(current_tag, sizeof current_tag, "%s", tag ? tag : "");
    pthread_mutex_unlock(&lock);
}

void log_init(enum log_level level, const char *tag)
{
    pthread_mutex_lock(&lock);
    threshold = level;
    pthread_mutex_unlock(&lock);
    log_set_tag(tag);
}

enum log_level log_level(void)
{
    pthread_mutex_lock(&lock);
    enum log_level level = threshold;
    pthread_mutex_unlock(&lock);
    return level;
}

int log_level_parse(const char *name, enum log_level *ret)
{
    for (int i = LOG_ERROR; i <= LOG_DEBUG; i++)
        if (!strcasecmp(name, level_names[i])) {
            *ret = i;
            return 0;
        }
    return -1;
}

void log_vwrite(enum log_level level, const char *fmt, va_list ap)
{
    if (level > log_level())
        return;
    char text[LINE_MAX_BYTES], stamp[32];
    vsnprintf(text, sizeof text, fmt, ap);
    for (char *p = text; *p; p++) /* one line, and nothing that steers a terminal */
        if ((unsigned char)*p < ' ' || *p == 0x7F)
            *p = ' ';
    log_redact(text);
    clock_format_utc(clock_wall_us(), stamp);
    pthread_mutex_lock(&lock);
    fprintf(stderr, "%s %s %s%s%s\n", stamp, level_names[level], current_tag,
            *current_tag ? ": " : "", text);
    pthread_mutex_unlock(&lock);
}

#define LOG_AT(name, level)               \
    void log_##name(const char *fmt, ...) \
    {                                     \
        va_list ap;                       \
        va_start(ap, fmt);                \
        log_vwrite(level, fmt, ap);       \
        va_end(ap);                       \
    }

LOG_AT(error, LOG_ERROR)
LOG_AT(warning, LOG_WARNING)
LOG_AT(info, LOG_INFO)
LOG_AT(debug, LOG_DEBUG)
