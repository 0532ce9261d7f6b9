/*
 * The one error type. A function that can fail returns 0 (or a count >= 0), or -kind after filling
 * the caller's struct err with one line that says what failed, on which object, and what to do or
 * what happens next. Thread: a struct err belongs to its caller; nothing here is shared.
 */
#pragma once
#include <stdbool.h>

enum err_kind {
    ERR_NONE = 0,
    ERR_USAGE = 1, /* wrong command line */
    ERR_CONFIG,    /* a profile or configuration file is wrong; permanent */
    ERR_INPUT,     /* the source is bad, refused or over a limit; permanent */
    ERR_TRANSIENT, /* may go away by itself (network, Redis, a lost lease); retried with back-off */
    ERR_RESOURCE,  /* out of memory, disk, sessions or quota; retried, elsewhere if possible */
    ERR_DEVICE,    /* no usable device or encoder; retried on another worker */
    ERR_CANCELLED, /* asked to stop */
    ERR_BUG,       /* an invariant did not hold; retried once, then dead */
};

#define ERR_MSG_MAX 1024

struct err {
    enum err_kind kind;
    char msg[ERR_MSG_MAX]; /* one line, redacted when printed, never empty after a failure */
};

/* Fills *e (which may be NULL) and returns -kind. Control characters in the text become
 * spaces, bytes that are not UTF-8 '?': a message can go into JSON and onto a terminal. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "fmt: " before the message that is there; keeps the kind and returns -kind. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What follows from a kind; one table in err.c. */
const char *err_kind_name(enum err_kind kind);  /* "input", "transient", ... */
enum err_kind err_kind_parse(const char *name); /* ERR_BUG for an unknown name */
int err_exit_code(enum err_kind kind);          /* 0 ok, 1 failed, 2 usage, 3 bad input, ... */
const char *err_exit_meaning(int code);         /* for help and manual; NULL past the last code */
int err_http_status(enum err_kind kind);
bool err_is_permanent(enum err_kind kind); /* trying again cannot help */
