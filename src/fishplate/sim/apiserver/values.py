"""Decoded JSON. The shape of an object is data here (see `types`), not a Python type, so the checker cannot know it."""

from typing import Any, TypeAlias

Value: TypeAlias = Any
Object: TypeAlias = dict[str, Any]
