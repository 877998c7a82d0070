from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.budget.image_size import Size, size_of, size_of_base64
from plangate.budget.images import image_tokens


# Figures: OpenAI, "Images and vision", and its examples there.
@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("gpt-4o", (1024, 1024), 765),
        ("gpt-4o", (2048, 4096), 1105),
        ("gpt-4o", (128, 64), 255),
        ("gpt-4o-mini", (1024, 1024), 2833 + 4 * 5667),
        ("gpt-5", (1024, 1024), 70 + 4 * 140),
        ("o3", (512, 512), 75 + 150),
        ("openai:gpt-4o-2024-08-06", (1024, 1024), 765),
        ("ft:gpt-4o-2024-08-06:org::id", (1024, 1024), 765),
        ("gpt-4.1-mini", (1024, 1024), 1659),
        ("gpt-4.1-mini-2025-04-14", (1800, 2400), 2353),
        ("o4-mini", (32, 32), 2),
    ],
)
def test_an_image_costs_what_is_published(model, size, tokens):
    got = image_tokens(model, Size(*size))

    assert (got.tokens, got.is_known) == (tokens, True)


def test_less_detail_is_cheaper_where_the_model_heeds_it():
    size = Size(4096, 8192)

    assert image_tokens("gpt-4o", size, low=True).tokens == 85
    assert image_tokens("gpt-4.1-mini", size, low=True) == image_tokens("gpt-4.1-mini", size)


sizes = st.builds(Size, st.integers(1, 50_000), st.integers(1, 50_000))
MODELS = ["gpt-4o", "gpt-4o-mini", "gpt-5", "gpt-5-nano", "o4-mini"]


@given(st.sampled_from(MODELS), sizes)
def test_no_image_costs_nothing_or_more_than_one_of_unknown_size_or_model(model, size):
    known, unsized = image_tokens(model, size), image_tokens(model, None)
    unlisted = image_tokens("my-model", size)

    assert 0 < known.tokens <= unsized.tokens <= unlisted.tokens
    assert (unsized.is_known, unlisted.is_known) == (False, False)


def jpeg(width: int, height: int) -> bytes:
    notes = b"\xff\xe1" + struct.pack(">H", 60_002) + bytes(60_000)
    table = b"\xff\xc4" + struct.pack(">H", 6) + bytes(4)
    frame = b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width) + bytes(12)
    return b"\xff\xd8" + notes + table + frame


PICTURES = {
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + bytes(9),
    "gif": b"GIF87a" + struct.pack("<HH", 640, 480) + bytes(20),
    "jpeg": jpeg(640, 480),
    "webp lossy": b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", 640, 480) + bytes(4),
    "webp lossless": b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f"
    + struct.pack("<I", 639 | 479 << 14)
    + bytes(9),
    "webp extended": b"RIFF\0\0\0\0WEBPVP8X"
    + bytes(8)
    + (639).to_bytes(3, "little")
    + (479).to_bytes(3, "little")
    + bytes(4),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_the_size_is_read_from_the_head(kind):
    data = PICTURES[kind] + bytes(1_000)

    assert size_of(data) == Size(640, 480)
    assert size_of_base64(base64.b64encode(data).decode()) == Size(640, 480)


@given(st.sampled_from([each[:12] for each in PICTURES.values()] + [b""]), st.binary(max_size=80))
def test_no_bytes_end_in_an_error_or_in_an_empty_image(head, data):
    found = size_of(head + data)

    assert found is None or min(found) > 0


@given(st.text(max_size=50))
def test_no_text_ends_in_an_error(text):
    assert size_of_base64(text) is None
