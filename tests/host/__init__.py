"""The Python interface, case files, the cache, and what interrupts, forks and threads do to them."""
