"""The sister instruction sets: SASS, vISA and CTM, each alone and all against one model."""
