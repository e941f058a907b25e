"""What several rooms share: paths, launches of small kernels, and models and oracles that know nothing of ptxemu."""
