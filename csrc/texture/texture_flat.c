/* texture_flat.c: the common fetch, of one 2D level that is stored row by row.
 *
 * The same results as texture_warp.c, with less work: offsets of 32 bits, and texels of neighbouring lanes read at once.
 */
#if defined(__GNUC__) && !defined(__clang__)
#ifdef __OPTIMIZE__
#pragma GCC optimize("O3", "no-trapping-math") /* the loops over lanes become vectors */
#endif
#endif
#include "atomic.h"
#include "internal.h"
#include "surface_access.h"
#include "texture_axis.h"
#include "texture_flat.h"
#include "texture_sum.h"
#include "texture_texel.h"

#define EACH_LANE for (uint32_t i = 0; i < PE_LANES; i++)
#define MOST_TEXELS (1u << 22) /* of an axis: positions in 256ths fit an int */
#define MOST_BYTES (1u << 30)

/* Two neighbours along an axis and the weight of the second in 256ths. */
typedef struct line {
  int32_t at[2][PE_LANES];
  int32_t part[PE_LANES];
} line;

PE_INLINE bool is_bytes(const pe_texture *t) { return t->kind == PE_KIND_UNORM && t->memory.bits == 8 && !t->srgb; }

bool pe_flat_fits(const pe_texture_site *site, const pe_texture *t, const pe_sampler *s) {
  const pe_surface_desc *d = &t->memory;
  bool plain = !site->integer && !site->gather && !site->offsets && site->result == PE_RESULT_B32;
  bool flat = site->geom == PE_GEOM_2D && t->geom == PE_GEOM_2D && d->levels == 1 && d->layout == PE_LAYOUT_PITCH;
  bool small = d->width < MOST_TEXELS && d->height < MOST_TEXELS && (d->height + 1) * d->level[0].pitch < MOST_BYTES;
  bool summed = s->filter == PE_FILTER_LINEAR, copied = !summed && s->mip_filter == PE_FILTER_POINT;
  bool known = is_bytes(t) || (d->bits == 32 && (copied || t->kind == PE_KIND_FLOAT));
  return plain && flat && small && known && (summed || copied);
}

/* ---- texels along an axis ------------------------------------------------------------------------------------------- */

PE_INLINE pe_axis_rule rule_of(const pe_texture *t, const pe_sampler *s, uint32_t axis, const int32_t *offset) {
  return pe_rule(s->address[axis], s->normalized, axis ? t->memory.height : t->memory.width, offset);
}

/* The texels of coordinates in texels: f32 has room for every step. */
PE_INLINE void find_near(line *restrict l, const uint32_t *restrict coordinate, float extent, bool linear) {
  EACH_LANE {
    float u = pe_float(coordinate[i]), at = __builtin_fabsf(u) >= 0x1p-126f ? u : 0; /* no NaN, nothing subnormal */
    at = at < -2 ? -2 : at;
    at = at > extent + 2 ? extent + 2 : at;
    at *= linear ? 256 : 1;
    int32_t whole = (int32_t)at;
    whole -= (float)whole > at;
    if (linear) whole += (at - (float)whole >= 0.5f) - 128; /* floor(at - 127.5) */
    l->at[0][i] = linear ? whole >> 8 : whole;
    l->part[i] = whole & 255;
  }
}

/* The texels of coordinates that are fractions of the extent. */
PE_INLINE void find_normalized(line *restrict l, const uint32_t *restrict coordinate, const pe_axis_rule *rule,
                               bool linear) {
  double u[PE_LANES], p[PE_LANES];
  EACH_LANE u[i] = pe_float(coordinate[i]);
  pe_positions(p, u, rule);
  EACH_LANE {
    double at = linear ? p[i] * 256 - 127.5 : p[i];
    int32_t whole = (int32_t)at;
    whole -= whole > at;
    l->at[0][i] = linear ? whole >> 8 : whole;
    l->part[i] = whole & 255;
  }
}

/* The texels of one axis; lanes that need the border colour. */
PE_INLINE uint32_t find_line(line *restrict l, const uint32_t *coordinate, const pe_axis_rule *rule, bool linear) {
  uint32_t outside[PE_LANES], any = 0;
  if (rule->scale == 1 && !pe_repeats(rule->mode))
    find_near(l, coordinate, (float)rule->extent, linear);
  else
    find_normalized(l, coordinate, rule, linear);
  if (linear) EACH_LANE l->at[1][i] = l->at[0][i] + 1;
  for (uint32_t n = 0; n < (linear ? 2 : 1); n++) {
    pe_place_indices(l->at[n], outside, rule);
    if (rule->mode == PE_ADDRESS_BORDER) EACH_LANE any |= outside[i] << i;
  }
  return any;
}

/* ---- texels --------------------------------------------------------------------------------------------------------- */

/* Words of four bytes; those of neighbouring lanes mostly are neighbours. */
PE_INLINE void read_words(uint32_t *restrict to, const uint8_t *base, const int32_t *restrict offset) {
  for (uint32_t first = 0; first < PE_LANES; first += 16) {
    int32_t stray = 0;
    for (int32_t i = 0; i < 16; i++) stray |= offset[first + i] - offset[first] - 4 * i;
    if (!stray)
      memcpy(to + first, base + offset[first], 64);
    else
      for (uint32_t i = first; i < first + 16; i++) memcpy(to + i, base + offset[i], 4);
  }
}

PE_INLINE void read_texels(pe_words *restrict words, const pe_surface_desc *d, const int32_t *restrict offset) {
  uint64_t wide[PE_LANES];
  if (d->elem_bytes == 4) {
    read_words(words->word[0], d->base, offset);
    return;
  }
  EACH_LANE wide[i] = (uint32_t)offset[i];
  pe_read_texels(words, d->base, wide, d->elem_bytes);
}

PE_INLINE void read_corner(pe_words *restrict words, const pe_surface_desc *d, const int32_t *restrict x,
                           const int32_t *restrict y) {
  int32_t offset[PE_LANES], pitch = (int32_t)d->level[0].pitch, first = (int32_t)d->level[0].offset;
  EACH_LANE offset[i] = first + y[i] * pitch + x[i] * (int32_t)d->elem_bytes;
  read_texels(words, d, offset);
}

/* ---- components ----------------------------------------------------------------------------------------------------- */

PE_INLINE void store(uint32_t *restrict row, const uint32_t *restrict bits, uint32_t mask) {
  if (mask == PE_ALL_LANES)
    memcpy(row, bits, PE_LANES * sizeof *row);
  else
    PE_FOR_LANES(i, mask) row[i] = bits[i];
}

PE_INLINE void point_component(uint32_t *restrict bits, const pe_words *words, uint32_t place, bool bytes) {
  if (bytes)
    EACH_LANE bits[i] = pe_float_bits((float)(int32_t)(words->word[0][i] >> 8 * place & 255) / 255);
  else
    memcpy(bits, words->word[place], PE_LANES * sizeof *bits);
}

PE_INLINE void mixed_bytes(uint32_t *restrict bits, const pe_words words[4], int32_t weight[4][PE_LANES], uint32_t place) {
  int32_t sum[PE_LANES];
  EACH_LANE {
    sum[i] = 0;
    for (uint32_t c = 0; c < 4; c++) sum[i] += (int32_t)(words[c].word[0][i] >> 8 * place & 255) * weight[c][i];
  }
  pe_normalized_sum(bits, sum, 8, false);
}

PE_INLINE void mixed_floats(uint32_t *restrict bits, const pe_texture *t, const pe_words words[4],
                            int32_t weight[4][PE_LANES], uint32_t place) {
  pe_fineness fine = pe_fineness_of(t, false);
  double number[4][PE_LANES];
  int32_t exponent[4][PE_LANES];
  for (uint32_t c = 0; c < 4; c++) {
    EACH_LANE number[c][i] = pe_float(words[c].word[place][i]);
    pe_exponents(exponent[c], words[c].word[place]);
  }
  pe_sum_of_plane(bits, number, exponent, weight, fine);
}

PE_INLINE void find_weights(int32_t weight[4][PE_LANES], const int32_t *restrict a, const int32_t *restrict b) {
  EACH_LANE {
    weight[3][i] = (a[i] * b[i] + 128) >> 8;
    weight[2][i] = b[i] - weight[3][i];
    weight[1][i] = a[i] - weight[3][i];
    weight[0][i] = 256 - a[i] - weight[2][i];
  }
}

PE_INLINE bool fetch(const pe_flat *f, bool linear, bool bytes) {
  static const int32_t none[PE_LANES];
  const pe_surface_desc *d = &f->texture->memory;
  line x, y;
  pe_words words[4];
  int32_t weight[4][PE_LANES];
  pe_axis_rule across = rule_of(f->texture, f->sampler, 0, none), down = rule_of(f->texture, f->sampler, 1, none);
  if ((find_line(&x, f->x, &across, linear) | find_line(&y, f->y, &down, linear)) & f->mask) return false;
  for (uint32_t c = 0; c < (linear ? 4 : 1); c++) read_corner(&words[c], d, x.at[c & 1], y.at[c >> 1]);
  if (linear) find_weights(weight, x.part, y.part);
  for (uint32_t k = 0; k < 4; k++) {
    uint32_t bits[PE_LANES];
    int32_t place = pe_component_place(d, k);
    if (!(f->wanted >> k & 1)) continue;
    if (place < 0)
      memset(bits, 0, sizeof bits);
    else if (!linear)
      point_component(bits, words, (uint32_t)place, bytes);
    else if (bytes)
      mixed_bytes(bits, words, weight, (uint32_t)place);
    else
      mixed_floats(bits, f->texture, words, weight, (uint32_t)place);
    store(f->out + k * PE_LANES, bits, f->mask);
  }
  return true;
}

PE_WIDE bool pe_flat_fetch(const pe_flat *f) {
  bool linear = f->sampler->filter == PE_FILTER_LINEAR;
  if (is_bytes(f->texture)) return linear ? fetch(f, true, true) : fetch(f, false, true);
  return linear ? fetch(f, true, false) : fetch(f, false, false);
}
