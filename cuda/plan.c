/* plan.c: the items of graphs. */
#include <stdlib.h>
#include "px_graph.h"
#include "px_queue.h"

/* The item of a plan's node. */
static void fill(px_item *item, px_plan *plan, size_t number) {
  if (plan->work[number]) item->work = px_work_keep(plan->work[number]);
  item->branch = plan->branch[number];
  if (item->branch) item->plan = px_plan_keep(plan);
}

px_item **px_plan_items(px_plan *plan, px_context *context) {
  size_t count = plan->count + 2, made = 0;
  px_item **items = calloc(count, sizeof *items);
  if (!items) return NULL;
  while (made < count && (items[made] = px_item_new(NULL, context))) made++;
  for (size_t i = 0; made == count && i < plan->count; i++) fill(items[i + 1], plan, i);
  if (made == count) return items;
  while (made--) px_item_release(items[made]);
  free(items);
  return NULL;
}

bool px_plan_follow(const px_plan *plan, px_item **items) {
  px_item *begin = items[0], *end = items[plan->count + 1];
  bool fits = true;
  for (size_t i = 0; i < plan->edges; i++)
    fits = fits && px_item_follow(items[plan->edge[i][1] + 1], items[plan->edge[i][0] + 1]);
  for (size_t i = 1; i <= plan->count; i++) {
    if (!items[i]->missing) fits = fits && px_item_follow(items[i], begin);
    fits = fits && px_item_follow(end, items[i]);
  }
  if (!plan->count) fits = fits && px_item_follow(end, begin);
  for (size_t i = 1; i <= plan->count; i++) fits = fits && px_event_heed(items[i]);
  return fits;
}

px_item *px_plan_enqueue(const px_plan *plan, px_item **items, bool fits, px_item *rest) {
  for (size_t i = 0; !fits && i < plan->count + 2; i++) px_item_give_up(items[i]);
  px_pending += plan->count + 2;
  for (size_t i = plan->count + 2; i-- > 0;) {
    if (items[i]->missing) continue;
    items[i]->next = rest;
    rest = items[i];
  }
  return rest;
}

/* ---- graphs that a value chooses ---- */

void px_plan_set_values(const px_plan *plan) {
  for (size_t i = 0; i < plan->starts; i++) px_block_set_value(plan->start[i].value, plan->start[i].word);
  for (size_t i = 0; i < plan->count; i++)
    for (unsigned k = 0; plan->branch[i] && k < plan->branch[i]->count; k++) px_plan_set_values(plan->branch[i]->plan[k]);
}

/* What is to be done, for the first time or again; NULL: nothing more. */
static px_plan *chosen_plan(const px_branch *branch, bool again) {
  uint32_t value = px_block_value(branch->value);
  switch (branch->kind) {
    case cudaGraphCondTypeWhile: return value ? branch->plan[0] : NULL;
    case cudaGraphCondTypeIf:
      if (again) return NULL;
      return value ? branch->plan[0] : branch->count > 1 ? branch->plan[1] : NULL;
    default: return !again && value < branch->count ? branch->plan[value] : NULL;
  }
}

bool px_plan_choose(px_item *item, px_item **ready) {
  px_plan *plan = chosen_plan(item->branch, item->chosen);
  item->chosen = true;
  if (!plan) return true;
  px_item **items = px_plan_items(plan, item->context);
  bool fits = items != NULL, goes_on = false;
  if (fits) {
    px_queue_lock();
    px_item *end = items[plan->count + 1];
    goes_on = px_item_follow(item, end);
    fits = goes_on && px_plan_follow(plan, items);
    *ready = px_plan_enqueue(plan, items, fits, *ready);
    px_queue_unlock();
    free(items);
  }
  if (!fits) px_stay_in(item->context, cudaErrorMemoryAllocation);
  return !goes_on;
}
