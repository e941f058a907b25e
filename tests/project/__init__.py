"""The project itself: packages, documents, samples, benchmarks, and the order of its modules."""
