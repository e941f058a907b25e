"""Parts of rows that several chapters have."""

from __future__ import annotations

HINT = "hint?=L2::cache_hint"
SCOPE = "scope=cta,cluster,gpu,sys"
THREE = "d:type, a:type, b:type, c:type"
