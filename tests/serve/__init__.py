"""The compile server: its protocol, and the images of programs that it reads."""
