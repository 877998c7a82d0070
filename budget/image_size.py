"""Width and height of an image from its first bytes; pixels are never decoded."""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

_HEAD = 1 << 18
"""Characters of base64 that are looked at: a JPEG can have 64 KB of notes before its size."""

_PNG, _GIF, _JPEG = b"\x89PNG\r\n\x1a\n", (b"GIF87a", b"GIF89a"), b"\xff\xd8"
_NO_SIZE = frozenset({0xC4, 0xC8, 0xCC})  # tables among the JPEG segments that begin with 0xC.
_SHORTEST = 30


class Size(NamedTuple):
    """In pixels, both above zero."""

    width: int
    height: int


def size_of_base64(data: str) -> Size | None:
    """Return the size of an encoded image; None where it cannot be read from its head."""
    head = data[: min(_HEAD, len(data) // 4 * 4)]
    try:
        return size_of(base64.b64decode(head, validate=True))
    except (ValueError, binascii.Error):
        return None


def size_of(data: bytes) -> Size | None:
    """Return the size of a PNG, GIF, JPEG or WebP; None for anything else.

    Example:
        >>> size_of(b"GIF89a" + bytes([64, 1, 200, 0]) + bytes(20))
        Size(width=320, height=200)
    """
    if len(data) < _SHORTEST:
        return None
    if data.startswith(_PNG) and data[12:16] == b"IHDR":
        found = Size(_big(data[16:20]), _big(data[20:24]))
    elif data.startswith(_GIF):
        found = Size(_little(data[6:8]), _little(data[8:10]))
    elif data.startswith(_JPEG):
        found = _jpeg(data)
    elif data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        found = _webp(data)
    else:
        return None
    return found if min(found) > 0 else None


def _jpeg(data: bytes) -> Size:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:  # noqa: PLR2004 - begins each segment
        kind = data[at + 1]
        if 0xC0 <= kind <= 0xCF and kind not in _NO_SIZE:  # noqa: PLR2004 - start of frame
            return Size(_big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7]))
        at += 2 + _big(data[at + 2 : at + 4])
    return Size(0, 0)


def _webp(data: bytes) -> Size:
    if data[12:16] == b"VP8X":
        return Size(_little(data[24:27]) + 1, _little(data[27:30]) + 1)
    if data[12:16] == b"VP8L":
        bits = _little(data[21:25])
        return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    return Size(_little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF)


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
