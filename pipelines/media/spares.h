/*
 * Encoders opened ahead. None can be used twice: an encoder's rate control and picture numbering go
 * on from what it has seen, and a chunk's bytes may depend on the chunk alone (I2). So when a chunk
 * is done, the encoders of another one like it are opened on a thread of their own, while the
 * result is on its way to the queue and the next task on its way back. On a GPU that is most of
 * what starting a chunk takes.
 *
 * Thread: any; one owner makes and frees it.
 */
#pragma once
#include "pipelines/media/encoder_codec.h"

struct spares;

struct spares *spares_new(void);
void spares_free(struct spares **s); /* waits for the one that is being opened */

/* Takes the codec over and opens it soon. One that does not open is dropped: whoever needs it opens
 * his own, and has the reason. So are GOP encoders, which are large and opened all the time. */
void spares_put(struct spares *s, struct encoder_codec *codec);

/* One equal to `like`, opened or about to be; NULL: none. The caller frees it. Waits for one that
 * is being opened. */
struct encoder_codec *spares_take(struct spares *s, const struct encoder_codec *like);

void spares_clear(struct spares *s); /* drops all that nobody took */
