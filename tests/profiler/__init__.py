"""What the profiler counts, against numbers worked out by hand."""
