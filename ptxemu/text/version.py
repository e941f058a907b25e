"""The version of ptxemu."""

VERSION = "0.1.0"
