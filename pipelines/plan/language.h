/* Languages: from what containers say (ISO 639-2) to what playlists say (RFC 5646). Pure. */
#pragma once

/* The tag for a container's language code: "eng" and "en" give "en", "ger" and "deu" give "de", a
 * code without a short form and a tag such as "pt-BR" stay. NULL when it names no language ("und",
 * "mul", nothing) or is not a tag at all. Static, or `code` itself. */
const char *language_tag(const char *code);
