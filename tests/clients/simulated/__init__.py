"""Programs that run on ptxemu and, unchanged, on the simulator that their compiler brings."""
