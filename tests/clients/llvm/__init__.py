"""LLVM's own tests of its PTX: what its compiler makes of them, and what their functions compute."""
