/*
 * All renditions of a chunk are encoded side by side from one decode, and what the queue counts is
 * source frames that the slowest of them has taken: the bar holds for every rendition, and each is
 * named with its own frames so far, which are fewer or more where it has a frame rate of its own.
 * Speed counts from the first frame seen, so that a resumed job does not boast of what an earlier
 * run did.
 */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/format.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strbuf.h"

enum {
    REDRAW_US = 200 * 1000,
    PLAIN_US = 5 * 1000 * 1000,
    RATE_MIN_US = 500 * 1000, /* no rate from less than this */
    BAR_CELLS = 24,
};

struct progress {
    FILE *out;
    bool is_quiet, is_terminal, has_open_line, has_ended;
    int64_t shown_us;
    int64_t first_us, first_frames; /* where counting began; first_us 0: not yet */
    struct plan *plan;              /* NULL until planned */
    double duration_s;              /* of the source; 0 until probed */
};

struct progress *progress_new(FILE *out, bool is_quiet)
{
    struct progress *p = xcalloc(1, sizeof *p);
    p->out = out;
    p->is_quiet = is_quiet;
    p->is_terminal = isatty(fileno(out));
    return p;
}

static void clear_line(struct progress *p)
{
    if (p->has_open_line)
        fputs("\r\033[K", p->out);
    p->has_open_line = false;
}

void progress_free(struct progress **p)
{
    if (!*p)
        return;
    if ((*p)->has_open_line)
        fputc('\n', (*p)->out);
    fflush((*p)->out);
    bind_free(&plan_type, &(*p)->plan);
    free(*p);
    *p = NULL;
}

void progress_say(struct progress *p, const char *line)
{
    clear_line(p);
    fprintf(p->out, "%s\n", line);
    fflush(p->out);
    p->shown_us = 0;
}

static void measure_source(struct progress *p, const struct job *job)
{
    struct source *source = NULL;
    if (bind_parse(&source_type, job->source, strlen(job->source), "source", ERR_BUG, &source,
                   NULL) < 0)
        return;
    p->duration_s = rational_to_double(source->duration);
    bind_free(&source_type, &source);
}

static void learn(struct progress *p, const struct job *job, int64_t now)
{
    if (!p->duration_s && job->source)
        measure_source(p, job);
    if (!p->plan && job->plan)
        bind_parse(&plan_type, job->plan, strlen(job->plan), "plan", ERR_BUG, &p->plan, NULL);
    if (!p->first_us && job->state == JOB_RUNNING) {
        p->first_us = now;
        p->first_frames = job->frames_done;
    }
}

/* Done and all: frames where there is video, else tasks. */
static double fraction_done(const struct job *job)
{
    int64_t done = job->frames_total ? job->frames_done : job->tasks_done;
    int64_t all = job->frames_total ? job->frames_total : job->tasks;
    if (job->state == JOB_DONE)
        return 1;
    if (job->state < JOB_RUNNING || all <= 0)
        return 0;
    return done >= all ? 1 : (double)done / (double)all;
}

static void add_bar(struct strbuf *b, double fraction)
{
    int full = (int)(fraction * BAR_CELLS);
    char cells[BAR_CELLS + 1];
    memset(cells, ' ', BAR_CELLS);
    memset(cells, '=', (size_t)full);
    if (full < BAR_CELLS)
        cells[full] = '>';
    cells[BAR_CELLS] = 0;
    strbuf_printf(b, "[%s] ", cells);
}

static void add_rates(struct strbuf *b, const struct progress *p, const struct job *job,
                      int64_t now)
{
    char eta[FORMAT_MAX];
    double s = (double)(now - p->first_us) / 1e6;
    double fps = (double)(job->frames_done - p->first_frames) / s;
    if (!p->first_us || now - p->first_us < RATE_MIN_US || fps <= 0)
        return;
    strbuf_printf(b, "  %.0f fps", fps);
    if (p->duration_s > 0)
        strbuf_printf(b, "  %.2fx", fps * p->duration_s / (double)job->frames_total);
    if (job->frames_done < job->frames_total)
        strbuf_printf(b, "  ETA %s",
                      format_clock((double)(job->frames_total - job->frames_done) / fps, eta));
}

static void add_renditions(struct strbuf *b, const struct progress *p, const struct job *job)
{
    for (size_t i = 0; i < p->plan->n_renditions; i++) {
        const struct plan_rendition *r = &p->plan->renditions[i];
        double frames = (double)job->frames_done;
        if (rational_is_set(r->fps) && job->frames_total)
            frames *= rational_to_double(r->fps) * p->duration_s / (double)job->frames_total;
        strbuf_printf(b, "  %s %.0f", r->name, frames);
    }
    for (size_t i = 0; i < p->plan->n_audio; i++)
        strbuf_printf(b, "  %s", p->plan->audio[i].name);
}

static char *describe(const struct progress *p, const struct job *job, int64_t now)
{
    struct strbuf b = {0};
    double fraction = fraction_done(job);
    if (p->is_terminal)
        add_bar(&b, fraction);
    strbuf_printf(&b, "%3.0f %%  %s", fraction * 100, job_state_names[job->state]);
    if (job->frames_total) {
        strbuf_printf(&b, "  %" PRId64 "/%" PRId64 " frames", job->frames_done, job->frames_total);
        add_rates(&b, p, job, now);
    } else if (job->tasks) {
        strbuf_printf(&b, "  %" PRId64 "/%" PRId64 " tasks", job->tasks_done, job->tasks);
    }
    if (p->plan)
        add_renditions(&b, p, job);
    return strbuf_take(&b);
}

static void draw(struct progress *p, const char *line)
{
    struct winsize size = {0};
    if (!p->is_terminal) {
        fprintf(p->out, "%s\n", line);
    } else {
        int columns = ioctl(fileno(p->out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
        clear_line(p);
        fprintf(p->out, "%.*s", columns > 1 ? columns - 1 : 79, line);
        p->has_open_line = true;
    }
    fflush(p->out);
}

void progress_update(struct progress *p, const struct job *job)
{
    int64_t now = clock_mono_us();
    bool is_end = cli_job_has_ended(job) && !p->has_ended;
    learn(p, job, now);
    if (p->is_quiet || p->has_ended ||
        (!is_end && now - p->shown_us < (p->is_terminal ? REDRAW_US : PLAIN_US)))
        return;
    cleanup(free_ptr) char *line = describe(p, job, now);
    draw(p, line);
    p->shown_us = now;
    p->has_ended = is_end;
}
