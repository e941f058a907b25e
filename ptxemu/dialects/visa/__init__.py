"""Intel vISA: the TYPED_ATOMIC instruction and what a program needs around it."""
