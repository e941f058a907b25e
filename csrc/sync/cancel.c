/* cancel.c: clusterlaunchcontrol.try_cancel (PTX ISA): a cluster that has not started is taken out of the grid.
 *
 * The response is four words: x, y and z of the cluster's first CTA, and 1; or all zeros, if there was none.
 */
#include <string.h>
#include "async.h"
#include "atomic.h"
#include "cta.h"
#include "place.h"
#include "supply.h"
#include "sync.h"
#include "worker.h"

enum { WORDS = 4, CANCELLED = WORDS - 1, BYTES = WORDS * sizeof(uint32_t) };

/* To one CTA, which is told on its mbarrier that the bytes have arrived. */
static void respond(pe_warp *w, const pe_cancel_site *site, uint16_t space, uint32_t lane, uint64_t target, uint64_t object,
                    const uint32_t *response) {
  pe_access written = {site->pos, space, PE_IN_SHARED, PE_WRITE | PE_ASYNC | PE_BULK, BYTES, NULL};
  pe_mbarrier_site told = {.pos = site->pos, .op = PE_MBARRIER_COMPLETE_TX, .space = space};
  uint64_t objects[PE_WARP_LANES];
  uint32_t bytes[PE_WARP_LANES];
  memcpy(pe_host(w, &written, lane, target, BYTES), response, BYTES);
  objects[lane] = object;
  bytes[lane] = BYTES;
  pe_mbarrier(w, &told, 1u << lane, objects, bytes, NULL);
}

static void respond_to_all(pe_warp *w, const pe_cancel_site *site, uint32_t lane, uint64_t target, uint64_t object,
                           const uint32_t *response) {
  for (uint32_t rank = 0; rank < w->cluster_nctarank; rank++) {
    uint64_t to = pe_cluster_peer(w, site->space, target, rank), at = pe_cluster_peer(w, site->space, object, rank);
    respond(w, site, PE_GENERIC, lane, to, at, response);
  }
}

void pe_cluster_cancel(pe_warp *w, const pe_cancel_site *site, uint32_t mask, const uint64_t *target,
                       const uint64_t *object) {
  PE_FOR_LANES(lane, mask) {
    uint64_t number;
    uint32_t response[WORDS] = {0};
    if (pe_supply_cancel(&pe_self->supply, w->launch, &number)) {
      pe_cta_index(w->launch, number, response);
      response[CANCELLED] = 1;
    }
    if (site->multicast)
      respond_to_all(w, site, lane, target[lane], object[lane], response);
    else
      respond(w, site, site->space, lane, target[lane], object[lane], response);
  }
}
