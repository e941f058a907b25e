"""Writing case files: the data of a TOML file as text."""

from __future__ import annotations

import json
import re
from typing import Any

BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(data: dict[str, Any]) -> str:
    """A TOML file with these values, its tables after all other values; what they hold is written in line."""
    tables = {key: value for key, value in data.items() if isinstance(value, dict)}
    lists = {key: value for key, value in data.items() if _is_tables(value)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in data.items() if key not in tables and key not in lists]
    for key, table in tables.items():
        lines += ["", f"[{_key(key)}]", *_pairs(table)]
    for key, items in lists.items():
        for item in items:
            lines += ["", f"[[{_key(key)}]]", *_pairs(item)]
    return "\n".join([*lines, ""])


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _pairs(table: dict[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else quoted(key)


def quoted(text: str) -> str:
    """A text or a key in quotes."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(_pairs(value))} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return quoted(value) if isinstance(value, str) else str(value)
