/*
 * One log for the process: lines on stderr, "2026-01-02T03:04:05.678Z level tag: text", redacted.
 * Any thread. Libraries of the product log at debug only; verbs and processes use the other levels.
 */
#pragma once
#include <stdarg.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

void log_init(enum log_level level, const char *tag); /* tag: copied; "" for none */
enum log_level log_level(void);
int log_level_parse(const char *name, enum log_level *ret); /* "error".."debug"; 0 or -1 */
void log_set_tag(const char *tag);
void log_vwrite(enum log_level level, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The one choke point for secrets: rewrites URL userinfo passwords, URL queries, and values of
 * Authorization-like headers and *_SECRET/_TOKEN/_PASSWORD= assignments to "***", in place (never
 * longer). Everything that is printed, stored as a reason, or sent to a person goes through it. */
void log_redact(char *line);
