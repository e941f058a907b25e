"""Pages of the site that are not in docs/: the changelog, and a gallery, for which the samples are run (``make docs``)."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "samples"
GALLERY = """# Gallery

What the samples draw. Each is CUDA C++ and the PTX that nvcc makes of it, a case, and a reference in NumPy that the result is
compared with: `ptxemu run samples/NAME`.
"""


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages and pictures."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")
    files.append(File.generated(config, "changes.md", content=changes))
    page = [GALLERY]
    for title, name, picture, pixels in _pictures():
        files.append(File.generated(config, f"pictures/{picture}", content=pixels))
        source = (SAMPLES / name / "kernel.cu").read_text(encoding="utf-8")
        page.append(f"## {name}\n\n{title}\n\n![{title}](pictures/{picture})\n\n```cuda\n{source}```\n")
    files.append(File.generated(config, "gallery.md", content="\n".join(page)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Comments say how blocks are tested; readers of the site need none of them."""
    return re.sub(r"^ *<!--.*?-->\n?", "", markdown, flags=re.MULTILINE | re.DOTALL)


def _pictures() -> Iterator[tuple[str, str, str, bytes]]:
    """Title, sample, file and contents of each picture that a case saves."""
    with tempfile.TemporaryDirectory(prefix="ptxemu-site-") as folder:
        for case in sorted(SAMPLES.glob("*/case.toml")):
            described = tomllib.loads(case.read_text(encoding="utf-8"))
            saved = [name for name in described.get("save", {}).values() if name.endswith(".png")]
            if saved:
                command = [sys.executable, "-m", "ptxemu", "run", str(case), "--output-dir", folder]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            for name in saved:
                yield described["title"], case.parent.name, name, (Path(folder) / name).read_bytes()
