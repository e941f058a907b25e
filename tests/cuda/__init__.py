"""The CUDA libraries: what they answer, and what programs that use them compute."""
