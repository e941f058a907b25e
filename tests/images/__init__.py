"""Files and images with PTX in them: fat binaries, and what compilers make for the host."""
