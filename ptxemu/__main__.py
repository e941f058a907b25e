"""``python -m ptxemu``."""

from ptxemu.cli import main

if __name__ == "__main__":
    main()
