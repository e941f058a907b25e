"""``ptxemu debug --dap`` and VS Code's test client of the protocol: ``python -m tests.clients.debug_adapter``.

npm installs the client (``@vscode/debugadapter-testsupport``); node is that on PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.debugger.test_terminal import SOURCE, STORE
from tests.support.kernel_tools import kernel
from tests.support.places import TESTS

CLIENT = "@vscode/debugadapter-testsupport@1.68.0"
ADAPTER = 'from ptxemu.cli import main\nmain(["debug", "--dap"])\n'
SECONDS = 300


def main() -> int:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        print("debug adapter: not tested: there is no npm (apt-get install npm)")
        return 1
    with tempfile.TemporaryDirectory(prefix="ptxemu-") as name:
        folder = Path(name).resolve()
        subprocess.run([npm, "install", "--silent", "--no-audit", "--no-fund", CLIENT], cwd=folder, check=True, timeout=SECONDS)
        files = {"adapter.py": ADAPTER, "k.cu": SOURCE, "k.ptx": kernel(STORE) + f'.file 1 "{folder / "k.cu"}"\n'}
        for file, text in files.items():
            (folder / file).write_text(text)
        shutil.copy(TESTS / "clients" / "debug_adapter.js", folder)
        arguments = [sys.executable, *(str(folder / file) for file in ("adapter.py", "k.ptx", "k.cu"))]
        done = subprocess.run(
            [node, "debug_adapter.js", *arguments], cwd=folder, env=dict(os.environ), timeout=SECONDS, check=False
        )
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
