#include "pipelines/media/turn.h"

#include "pipelines/media/planes.h"
#include "pipelines/plan/route.h"

static int cut_width(const AVFrame *in)
{
    return in->width - (int)(in->crop_left + in->crop_right);
}

static int cut_height(const AVFrame *in)
{
    return in->height - (int)(in->crop_top + in->crop_bottom);
}

void turn_size(const AVFrame *in, const struct source_video *v, int *ret_width, int *ret_height)
{
    bool is_sideways = v->rotation % 180 != 0;
    *ret_width = is_sideways ? cut_height(in) : cut_width(in);
    *ret_height = is_sideways ? cut_width(in) : cut_height(in);
}

/* Clockwise, by where the rows and columns of the picture in lie. */
static void set_steps(int rotation, struct turn_params *p)
{
    static const struct {
        int column_by_x, column_by_y, row_by_x, row_by_y;
    } quarters[] = {{1, 0, 0, 1}, {0, 1, -1, 0}, {-1, 0, 0, -1}, {0, -1, 1, 0}};
    int q = rotation / 90 % 4;
    p->column_by_x = quarters[q].column_by_x;
    p->column_by_y = quarters[q].column_by_y;
    p->row_by_x = quarters[q].row_by_x;
    p->row_by_y = quarters[q].row_by_y;
}

/* 0 to 255 become 16 to 235 for luma and 16 to 240 for chroma, around its middle; likewise with 10
 * bits. */
static void set_range(bool is_full, int bits, bool is_chroma, struct turn_plane *a)
{
    int full = (1 << bits) - 1, more = bits - 8, middle = 1 << (bits - 1);
    a->gain = a->divisor = 1;
    if (!is_full)
        return;
    a->divisor = full;
    a->gain = (is_chroma ? 224 : 219) << more;
    a->bias = is_chroma ? middle * (full - a->gain) : (16 << more) * full;
    a->bias += full / 2;
}

int turn_params_make(const AVFrame *in, const AVFrame *out, const struct source_video *v,
                     struct turn_params *ret, struct err *e)
{
    const struct planes *from = planes_of(in), *to = planes_of(out);
    int width, height;
    turn_size(in, v, &width, &height);
    if (!from || from != to || from->step != 2 || out->width != width || out->height != height)
        return err_set(e, ERR_DEVICE,
                       "pictures of this format cannot be turned or cut there; use --device cpu");
    *ret = (struct turn_params){.bytes = from->bytes, .shift = from->shift};
    set_steps(v->rotation, ret);
    for (int z = 0; z < 2; z++) {
        struct turn_plane *a = &ret->planes[z];
        int last_column = ((cut_width(in) + z) >> z) - 1,
            last_row = ((cut_height(in) + z) >> z) - 1;
        *a = (struct turn_plane){.width = (out->width + z) >> z,
                                 .height = (out->height + z) >> z,
                                 .samples = z + 1,
                                 .column = (int)in->crop_left >> z,
                                 .row = (int)in->crop_top >> z};
        ret->in[z] = planes_data(from, in, z, &a->in_pitch);
        ret->out[z] = planes_data(to, out, z, &a->out_pitch);
        a->row += ret->row_by_x < 0 || ret->row_by_y < 0 ? last_row : 0;
        bool is_from_right = ret->column_by_x < 0 || ret->column_by_y < 0;
        a->column += is_from_right != v->is_flipped ? last_column : 0;
        set_range(route_is_full_range(v), from->bits, z == 1, a);
    }
    if (v->is_flipped) { /* mirrored before it is turned */
        ret->column_by_x = -ret->column_by_x;
        ret->column_by_y = -ret->column_by_y;
    }
    return 0;
}

int turn_describe(const AVFrame *in, const struct source_video *v, AVFrame *out, struct err *e)
{
    if (av_frame_copy_props(out, in) < 0)
        return err_set(e, ERR_RESOURCE, "turn a picture: out of memory");
    out->crop_left = out->crop_top = out->crop_right = out->crop_bottom = 0;
    AVRational aspect = in->sample_aspect_ratio;
    if (v->rotation % 180 && aspect.num)
        out->sample_aspect_ratio = (AVRational){aspect.den, aspect.num};
    if (route_is_full_range(v))
        out->color_range = AVCOL_RANGE_MPEG;
    return 0;
}
