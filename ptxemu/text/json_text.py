"""What commands print as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict


def json_text(value: Any) -> str:
    """JSON, where records are objects. It lacks NaN and infinities: these become texts, as does what is no data of JSON."""
    return json.dumps(_plain(value), indent=2, default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
