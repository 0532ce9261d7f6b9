/* The inside of common/bind.h: members that one piece of text fills (all types but structs, arrays
 * and maps). Pure; one table in bind_scalar.c. */
#pragma once
#include "common/bind.h"
#include "common/strbuf.h"

bool bind_is_scalar(enum bind_type type);

/* Fills the member from text; false when it is not what the field expects or outside its limits
 * (the member is then unchanged). is_quoted: only fields that are text may be. */
bool bind_scalar_read(const struct bind_field *f, const char *text, bool is_quoted, void *member);

/* The value of an absent field without a fallback. The member is zeroed. */
void bind_scalar_zero(const struct bind_field *f, void *member);

/* Appends what the field expects: "a whole number from 1 to 8". */
void bind_scalar_expected(const struct bind_field *f, struct strbuf *out);

json_t *bind_scalar_write(const struct bind_field *f, const void *member); /* NULL: left out */
