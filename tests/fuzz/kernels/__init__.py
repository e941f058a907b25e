"""Random kernels for both engines: a writer, and statements of all kinds, which modules register."""
