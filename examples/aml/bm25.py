"""Finds texts by words, ranked by plain BM25: no index to keep, no model, the same order always."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+")
_K1 = 1.2
_B = 0.75


def ranked(query: str, texts: Sequence[str]) -> list[int]:
    """Return the positions of the texts that share a word with the query, best first.

    Example:
        >>> ranked("cash deposits", ["wires to payees", "deposits of cash", "a deposit in cash"])
        [1, 2]
    """
    bags = [Counter(_words(text)) for text in texts]
    sizes = [sum(bag.values()) for bag in bags]
    mean = sum(sizes) / max(1, len(sizes))
    scores = [0.0] * len(bags)
    for word in dict.fromkeys(_words(query)):
        holding = sum(word in bag for bag in bags)
        weight = math.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
        for at, bag in enumerate(bags):
            often = bag[word]
            norm = often + _K1 * (1 - _B + _B * sizes[at] / mean) if often else 1.0
            scores[at] += weight * often * (_K1 + 1) / norm
    order = sorted(range(len(bags)), key=lambda at: (-scores[at], at))
    return [at for at in order if scores[at] > 0]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
