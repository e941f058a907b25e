"""Random texts, programs, kernels and case files: short parts of `make fuzz` as tests, and the fuzz targets themselves."""
