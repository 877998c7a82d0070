"""How many tokens an image costs, by OpenAI's published formulas; never its bytes as text.

Source: OpenAI, "Images and vision", calculating costs. Its multipliers for gpt-5-mini and -nano are
above what users have measured (1.2, 1.5), so these counts are too high rather than too low.
"""

from __future__ import annotations

import re
from math import ceil, floor, sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.budget.image_size import Size

_BOX, _SHORT_SIDE, _TILE = 2048, 768, 512
_PATCH, _MOST_PATCHES = 32, 1536
_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")


class _Tiles(NamedTuple):
    base: int
    tile: int


class _Patches(NamedTuple):
    multiplier: float


_OMNI, _THINKING, _FIVE = _Tiles(85, 170), _Tiles(75, 150), _Tiles(70, 140)
_KNOWN: Mapping[str, _Tiles | _Patches] = {
    "gpt-4o": _OMNI,
    "gpt-4.1": _OMNI,
    "gpt-4.5-preview": _OMNI,
    "gpt-4-turbo": _OMNI,
    "gpt-4o-mini": _Tiles(2833, 5667),
    "gpt-5": _FIVE,
    "gpt-5-chat-latest": _FIVE,
    "o1": _THINKING,
    "o1-pro": _THINKING,
    "o3": _THINKING,
    "computer-use-preview": _Tiles(65, 129),
    "gpt-4.1-mini": _Patches(1.62),
    "gpt-4.1-nano": _Patches(2.46),
    "gpt-5-mini": _Patches(1.62),
    "gpt-5-nano": _Patches(2.46),
    "o4-mini": _Patches(1.72),
}


class ImageTokens(NamedTuple):
    """What an image costs."""

    tokens: int
    is_known: bool
    """False where size or model is not known: then no image of any listed model costs more."""


def image_tokens(model: str, size: Size | None, *, low: bool = False) -> ImageTokens:
    """Return what one image costs.

    Args:
        model: As for `count_text`; dated and fine-tuned names count as their base.
        size: In pixels; None: not known.
        low: Sent with `detail: low`, which the models with tiles alone heed.

    Example:
        >>> from plangate.budget.image_size import Size
        >>> image_tokens("gpt-4o", Size(1024, 1024)), image_tokens("gpt-4.1-mini", None).tokens
        (ImageTokens(tokens=765, is_known=True), 2489)
    """
    kind = _KNOWN.get(_base_name(model))
    if kind is None:
        return ImageTokens(max(map(_most, _KNOWN.values())), is_known=False)
    if isinstance(kind, _Tiles) and low:
        return ImageTokens(kind.base, is_known=True)
    if size is None:
        return ImageTokens(_most(kind), is_known=False)
    if isinstance(kind, _Tiles):
        return ImageTokens(kind.base + kind.tile * _tiles(size), is_known=True)
    return ImageTokens(ceil(kind.multiplier * _patches(size)), is_known=True)


def _most(kind: _Tiles | _Patches) -> int:
    if isinstance(kind, _Patches):
        return ceil(kind.multiplier * _MOST_PATCHES)
    return kind.base + kind.tile * ceil(_BOX / _TILE) * ceil(_SHORT_SIDE / _TILE)


def _base_name(model: str) -> str:
    name = re.sub(r"^(?:\w+:)?ft:", "", model)
    name = name.partition(":")[0] if name != model else model.rpartition(":")[2]
    return _DATED.sub("", name)


def _tiles(size: Size) -> int:
    """Fit into the box, then shrink the shorter side; nothing is made larger."""
    fit = min(1.0, _BOX / max(size))
    fit *= min(1.0, _SHORT_SIDE / (min(size) * fit))
    across, down = (ceil(round(side * fit, 6) / _TILE) for side in size)
    return max(across, 1) * max(down, 1)


def _patches(size: Size) -> int:
    width, height = size
    whole = ceil(width / _PATCH) * ceil(height / _PATCH)
    if whole <= _MOST_PATCHES:
        return whole
    shrink = sqrt(_PATCH**2 * _MOST_PATCHES / (width * height))
    across, down = width * shrink / _PATCH, height * shrink / _PATCH
    if min(across, down) < 1:  # thinner than one patch: the published formula would give nothing
        return _MOST_PATCHES
    fit = min(floor(across) / across, floor(down) / down)
    covered = ceil(round(across * fit, 6)) * ceil(round(down * fit, 6))
    return min(covered, _MOST_PATCHES)
