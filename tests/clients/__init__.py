"""Programs that others wrote, on the CUDA libraries: fetched and run by hand, `make test-clients`."""
