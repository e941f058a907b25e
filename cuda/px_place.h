/* px_place.h: where memory lies: on the one device, or on the host. */
#ifndef PTXEMU_CUDA_PLACE_H
#define PTXEMU_CUDA_PLACE_H
#include "abi.h"

/* By the number of a device, or -1 for the host: CUDA 12 has no more. */
static inline cudaMemLocation px_place(int number) {
  return number == -1 ? (cudaMemLocation){cudaMemLocationTypeHost, 0} : (cudaMemLocation){cudaMemLocationTypeDevice, number};
}

/* Whether there is such a place: there is one device. */
static inline cudaError_t px_place_error(const cudaMemLocation *place) {
  if (place->type < cudaMemLocationTypeDevice || place->type > cudaMemLocationTypeHostNumaCurrent)
    return cudaErrorInvalidValue;
  return place->type == cudaMemLocationTypeDevice && place->id ? cudaErrorInvalidDevice : cudaSuccess;
}

#endif
