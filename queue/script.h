/* The embedded scripts (queue/lua/), called by the hash the server gave, or by text where it has
 * forgotten them. Thread: as the connection. */
#pragma once
#include "queue/connection.h"

struct script_set;

struct script_set *script_set_new(void);
void script_set_free(struct script_set **s);

/* Runs queue/lua/NAME.lua with KEYS[1] = QUEUE_PREFIX and the given ARGV. Returns as
 * connection_call does. */
int script_call(struct script_set *s, struct connection *c, const char *name,
                const struct request *argv, redisReply **ret, struct err *e);
