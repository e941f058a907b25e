/* px_graph.h: graphs that are made by capturing streams. */
#ifndef PTXEMU_CUDA_GRAPH_H
#define PTXEMU_CUDA_GRAPH_H
#include "px_stream.h"

/* Put work into the graph that a stream is captured in, behind what it has there. */
cudaError_t px_capture(struct px_stream *stream, px_work *work);

/* The number of the capture that a stream takes part in; 0: none. */
unsigned long long px_capture_id(const struct px_stream *stream);

/* A stream waits for a node of a capture that goes on, and takes part in it from then on. */
cudaError_t px_capture_join(struct px_stream *stream, unsigned long long id, int node);

#endif
