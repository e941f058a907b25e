/* texture_flat.c: the common fetches, of one level that is stored row by row.
 *
 * The same results as texture_warp.c, with less work: positions and offsets of 32 bits, and texels of neighbouring lanes read at
 * once.
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
#include "texture_line.h"
#include "texture_sum.h"
#include "texture_texel.h"

#define MOST_BYTES (1u << 30)

/* ---- what is common ------------------------------------------------------------------------------------------------- */

PE_INLINE bool is_bytes(const pe_texture *t) { return t->kind == PE_KIND_UNORM && t->memory.bits == 8 && !t->srgb; }

static bool is_sampled(const pe_texture *t, const pe_sampler *s) {
  const pe_surface_desc *d = &t->memory;
  bool small = d->width < PE_MOST_TEXELS && d->height < PE_MOST_TEXELS, isotropic = s->anisotropy <= 1;
  bool drawn =
      t->geom == PE_GEOM_2D || t->geom == PE_GEOM_A2D || (t->geom == PE_GEOM_1D && s->address[1] != PE_ADDRESS_BORDER);
  bool summed = s->filter == PE_FILTER_LINEAR && (is_bytes(t) || (d->bits == 32 && t->kind == PE_KIND_FLOAT));
  bool copied = s->filter == PE_FILTER_POINT && s->mip_filter == PE_FILTER_POINT;
  return drawn && small && isotropic && (summed || copied);
}

uint32_t pe_flat_ways(const pe_texture *t, const pe_sampler *s) {
  const pe_surface_desc *d = &t->memory;
  bool scaled = t->kind == PE_KIND_UNORM || t->kind == PE_KIND_SNORM;
  bool rows = t->state == PE_TEXTURE_IMAGE && d->levels == 1 && d->layout != PE_LAYOUT_BLOCK_LINEAR;
  if (!rows || d->total_bytes >= MOST_BYTES || (scaled && !is_bytes(t))) return 0;
  bool counted = pe_is_line(t->geom) || t->geom == PE_GEOM_2D || t->geom == PE_GEOM_A2D;
  return (is_sampled(t, s) ? PE_FLAT_SAMPLED : 0) | (counted ? PE_FLAT_COUNTED : 0);
}

uint32_t pe_flat_way(const pe_texture_site *site, const pe_texture *t) {
  if (site->gather | site->offsets | (site->result != PE_RESULT_B32)) return 0;
  bool lines = pe_is_line(site->geom) && pe_is_line(t->geom);
  if (site->integer) return (site->geom == t->geom || lines) && site->lod != PE_LOD_LEVEL ? PE_FLAT_COUNTED : 0;
  return site->geom == t->geom ? PE_FLAT_SAMPLED : 0;
}

/* ---- texels --------------------------------------------------------------------------------------------------------- */

/* Whether the lanes of each half read neighbouring words. */
PE_INLINE void find_runs(bool run[2], const int32_t *restrict offset) {
  int32_t stray[PE_LANES], any[2] = {0, 0};
  PE_EACH_LANE stray[i] = offset[i] - offset[i & 16] - (int32_t)(4 * (i & 15));
  for (uint32_t i = 0; i < 16; i++) any[0] |= stray[i];
  for (uint32_t i = 0; i < 16; i++) any[1] |= stray[16 + i];
  run[0] = !any[0], run[1] = !any[1];
}

/* Words of four bytes. */
PE_INLINE void read_words(uint32_t *restrict to, const uint8_t *base, const int32_t *restrict offset) {
  bool run[2];
  find_runs(run, offset);
  for (uint32_t half = 0, first = 0; half < 2; half++, first += 16) {
    if (run[half])
      memcpy(to + first, base + offset[first], 64);
    else
      for (uint32_t i = first; i < first + 16; i++) {
        uint32_t word;
        memcpy(&word, base + offset[i], sizeof word);
        to[i] = (uint32_t)pe_alone(word);
      }
  }
}

PE_INLINE void read_texels(pe_words *restrict words, const pe_surface_desc *d, const int32_t *restrict offset) {
  uint64_t wide[PE_LANES];
  if (d->elem_bytes == 4) {
    read_words(words->word[0], d->base, offset);
    return;
  }
  PE_EACH_LANE wide[i] = (uint32_t)offset[i];
  pe_read_texels(words, d->base, wide, d->elem_bytes);
}

/* Where the first texels of rows are. */
PE_INLINE void find_rows(int32_t *restrict row, const pe_flat *f, const int32_t *restrict y) {
  const pe_surface_desc *d = &f->texture->memory;
  int32_t pitch = (int32_t)d->level[0].pitch, stride = (int32_t)d->layer_stride;
  uint32_t last = d->layers - 1;
  PE_EACH_LANE row[i] = y[i] * pitch;
  if (f->layer) PE_EACH_LANE row[i] += (int32_t)(f->layer[i] < last ? f->layer[i] : last) * stride;
}

PE_INLINE void read_corner(pe_words *restrict words, const pe_surface_desc *d, const int32_t *restrict x,
                           const int32_t *restrict row) {
  int32_t offset[PE_LANES];
  PE_EACH_LANE offset[i] = row[i] + x[i] * (int32_t)d->elem_bytes;
  read_texels(words, d, offset);
}

/* Whether the second of two texels along x lies behind the first one, in every lane. */
PE_INLINE bool are_pairs(const pe_line *x) {
  int32_t apart = 0;
  PE_EACH_LANE apart |= x->at[1][i] - x->at[0][i] - 1;
  return !apart;
}

/* Two texels of four bytes each, which lie behind each other. */
PE_INLINE void read_pairs(uint32_t *restrict first, uint32_t *restrict second, const uint8_t *base,
                          const int32_t *restrict offset) {
  uint64_t pair[PE_LANES];
  PE_EACH_LANE {
    uint64_t texels;
    memcpy(&texels, base + offset[i], sizeof texels);
    pair[i] = pe_alone(texels);
  }
  PE_EACH_LANE first[i] = (uint32_t)pair[i], second[i] = (uint32_t)(pair[i] >> 32);
}

/* The texels around the place of each lane: in pairs, unless lanes read neighbours. */
PE_INLINE void read_corners(pe_words words[4], const pe_surface_desc *d, const pe_line *x, int32_t row[2][PE_LANES]) {
  bool pairs = d->elem_bytes == 4 && are_pairs(x), run[2] = {false, false};
  for (uint32_t c = 0; c < 4; c += 2) {
    int32_t offset[PE_LANES];
    PE_EACH_LANE offset[i] = row[c >> 1][i] + x->at[0][i] * (int32_t)d->elem_bytes;
    if (pairs && !c) find_runs(run, offset);
    if (pairs && !run[0] && !run[1]) {
      read_pairs(words[c].word[0], words[c + 1].word[0], d->base, offset);
    } else {
      read_texels(&words[c], d, offset);
      read_corner(&words[c + 1], d, x->at[1], row[c >> 1]);
    }
  }
}

/* ---- components ----------------------------------------------------------------------------------------------------- */

PE_INLINE void store(uint32_t *restrict row, const uint32_t *restrict bits, uint32_t mask) {
  if (mask == PE_ALL_LANES)
    memcpy(row, bits, PE_LANES * sizeof *row);
  else
    PE_FOR_LANES(i, mask) row[i] = bits[i];
}

PE_INLINE void point_component(uint32_t *restrict bits, const pe_texture *t, const pe_words *words, uint32_t place,
                               bool bytes) {
  if (bytes)
    PE_EACH_LANE bits[i] = pe_float_bits((float)(int32_t)(words->word[0][i] >> 8 * place & 255) / 255);
  else
    pe_texel_bits(bits, words, place, t->memory.bits, t->kind);
}

/* Keep the components of texels; those of `none` read as zero. */
PE_INLINE void keep_points(const pe_flat *f, const pe_words *words, bool bytes, const uint32_t *none) {
  for (uint32_t k = 0; k < 4; k++) {
    uint32_t bits[PE_LANES];
    int32_t place = pe_component_place(&f->texture->memory, k);
    if (!(f->wanted >> k & 1)) continue;
    if (place < 0)
      memset(bits, 0, sizeof bits);
    else
      point_component(bits, f->texture, words, (uint32_t)place, bytes);
    if (none) PE_EACH_LANE bits[i] = none[i] ? 0 : bits[i];
    store(f->out + k * PE_LANES, bits, f->mask);
  }
}

PE_INLINE void mixed_bytes(uint32_t *restrict bits, const pe_words words[4], int32_t weight[4][PE_LANES], uint32_t place) {
  int32_t sum[PE_LANES];
  PE_EACH_LANE {
    sum[i] = 0;
    for (uint32_t c = 0; c < 4; c++) sum[i] += (int32_t)(words[c].word[0][i] >> 8 * place & 255) * weight[c][i];
  }
  pe_normalized_sum(bits, sum, 8, false);
}

PE_INLINE void mixed_floats(uint32_t *restrict bits, const pe_words words[4], int32_t weight[4][PE_LANES],
                            const pe_shares *shares, uint32_t place) {
  uint32_t word[4][PE_LANES], top[PE_LANES];
  double total[PE_LANES];
  for (uint32_t c = 0; c < 4; c++) memcpy(word[c], words[c].word[place], sizeof word[c]);
  pe_add_words(total, top, 4, word, weight, shares);
  pe_round_words(bits, total);
}

PE_INLINE void find_weights(int32_t weight[4][PE_LANES], const int32_t *restrict a, const int32_t *restrict b) {
  PE_EACH_LANE {
    weight[3][i] = (a[i] * b[i] + 128) >> 8;
    weight[2][i] = b[i] - weight[3][i];
    weight[1][i] = a[i] - weight[3][i];
    weight[0][i] = 256 - a[i] - weight[2][i];
  }
}

/* Keep the components of weighted sums. */
PE_INLINE void keep_sums(const pe_flat *f, const pe_words words[4], int32_t weight[4][PE_LANES], bool bytes) {
  pe_shares shares;
  if (!bytes) pe_find_shares(&shares, 4, weight);
  for (uint32_t k = 0; k < 4; k++) {
    uint32_t bits[PE_LANES];
    int32_t place = pe_component_place(&f->texture->memory, k);
    if (!(f->wanted >> k & 1)) continue;
    if (place < 0)
      memset(bits, 0, sizeof bits);
    else if (bytes)
      mixed_bytes(bits, words, weight, (uint32_t)place);
    else
      mixed_floats(bits, words, weight, &shares, (uint32_t)place);
    store(f->out + k * PE_LANES, bits, f->mask);
  }
}

/* ---- fetches -------------------------------------------------------------------------------------------------------- */

PE_INLINE pe_axis_rule rule_of(const pe_texture *t, const pe_sampler *s, uint32_t axis, const int32_t *offset) {
  return pe_rule(s->address[axis], s->normalized, axis ? t->memory.height : t->memory.width, offset);
}

PE_INLINE bool sampled(const pe_flat *f, bool linear, bool bytes) {
  static const int32_t none[PE_LANES];
  const pe_surface_desc *d = &f->texture->memory;
  pe_line x, y;
  pe_words words[4];
  int32_t weight[4][PE_LANES], row[2][PE_LANES];
  bool normalized = f->sampler->normalized;
  pe_axis_rule across = rule_of(f->texture, f->sampler, 0, none), down = rule_of(f->texture, f->sampler, 1, none);
  uint32_t border = pe_find_line(&x, f->x, &across, normalized, linear) | pe_find_line(&y, f->y, &down, normalized, linear);
  if (border & f->mask) return false;
  for (uint32_t n = 0; n < (linear ? 2 : 1); n++) find_rows(row[n], f, y.at[n]);
  if (linear) {
    read_corners(words, d, &x, row);
    find_weights(weight, x.part, y.part);
    keep_sums(f, words, weight, bytes);
  } else {
    read_corner(&words[0], d, x.at[0], row[0]);
    keep_points(f, words, bytes, NULL);
  }
  return true;
}

PE_WIDEST static bool sampled_flat(const pe_flat *f) {
  bool linear = f->sampler->filter == PE_FILTER_LINEAR;
  if (is_bytes(f->texture)) return linear ? sampled(f, true, true) : sampled(f, false, true);
  return linear ? sampled(f, true, false) : sampled(f, false, false);
}

/* Integer coordinates are indices; what is outside reads as zero. */
PE_WIDEST static bool counted_flat(const pe_flat *f) {
  const pe_surface_desc *d = &f->texture->memory;
  uint32_t none[PE_LANES], width = d->width, height = d->height, layers = d->layers;
  int32_t x[PE_LANES], y[PE_LANES], row[PE_LANES];
  pe_words words;
  PE_EACH_LANE {
    none[i] = f->x[i] >= width || f->y[i] >= height || (f->layer && f->layer[i] >= layers);
    x[i] = f->x[i] < width ? (int32_t)f->x[i] : 0;
    y[i] = f->y[i] < height ? (int32_t)f->y[i] : 0;
  }
  find_rows(row, f, y);
  read_corner(&words, d, x, row);
  keep_points(f, &words, is_bytes(f->texture), none);
  return true;
}

bool pe_flat_fetch(const pe_flat *f, uint32_t way) { return way == PE_FLAT_COUNTED ? counted_flat(f) : sampled_flat(f); }
