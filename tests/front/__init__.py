"""From text to a checked module: parser, checker, linker, and agreement with ptxas."""
