"""What people upload: decoded, checked, written anew; nobody else's."""

import base64
import io
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.images import Images

OWNER, OTHER = "a" * 32, "b" * 32


@pytest.fixture
def images(tmp_path: Path) -> Images:
    return Images(tmp_path / "images", max_side=256, max_bytes=1_000_000)


def picture(kind: str = "PNG", size: tuple[int, int] = (40, 30), mode: str = "RGB", **saved: object) -> bytes:
    written = io.BytesIO()
    Image.new(mode, size, 128 if mode == "L" else None).save(written, kind, **saved)
    return written.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it is huge."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (picture("PNG"), "image/png"),
        (picture("JPEG"), "image/jpeg"),
        (picture("WEBP"), "image/png"),
        (picture("GIF"), "image/png"),
        (picture("PNG", mode="RGBA"), "image/png"),
        (picture("PNG", mode="L"), "image/png"),
        (picture("JPEG", mode="CMYK"), "image/jpeg"),
    ],
)
def test_an_image_is_kept_under_the_hash_of_what_is_kept(images: Images, data: bytes, media_type: str) -> None:
    found = images.add(OWNER, data)
    assert found.media_type == media_type and images.add(OWNER, data) == found == images.get(OWNER, found.id)
    head, _, encoded = images.data_url(OWNER, found.id).partition(",")
    assert head == f"data:{media_type};base64" and Image.open(io.BytesIO(base64.b64decode(encoded))).size == (40, 30)


def test_a_large_one_is_made_smaller_and_keeps_its_shape(images: Images) -> None:
    found = images.add(OWNER, picture("JPEG", (2000, 1000)))
    assert Image.open(found.path).size == (256, 128)


def test_place_and_rotation_of_a_photograph_are_not_passed_on(images: Images) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "secret place"
    found = images.add(OWNER, picture("JPEG", (40, 30), exif=exif))
    assert Image.open(found.path).size == (30, 40), "turned as it is to be seen"
    assert b"secret" not in found.path.read_bytes() and not Image.open(found.path).getexif()


def test_what_hangs_behind_an_image_is_left_behind(images: Images) -> None:
    found = images.add(OWNER, picture("PNG") + b"<script>alert(1)</script>")
    assert b"script" not in found.path.read_bytes()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "images.unreadable"),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "images.unreadable"),
        (b"<!doctype html><script>1</script>", "images.unreadable"),
        (picture("PNG")[:60], "images.unreadable"),
        (picture("JPEG")[:-20][:300], "images.unreadable"),
        (picture("BMP"), "images.unreadable"),
        (picture("TIFF"), "images.unreadable"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "images.unreadable"),
        (bomb(30_000, 30_000), "images.too_large"),
        (bomb(2**31 - 1, 2**31 - 1), "images.too_large"),
        (bomb(0, 5), "images.unreadable"),
        (b"\0" * 1_000_001, "images.too_large"),
        (b"\x00\x00\x00\x18ftypmp42" + b"\0" * 100, "images.video"),
        (b"\x1aE\xdf\xa3" + b"\0" * 100, "images.video"),
        (b"RIFF\x10\x00\x00\x00AVI LIST", "images.video"),
    ],
)
def test_what_is_no_image_is_refused_with_a_name_and_leaves_nothing(images: Images, data: bytes, code: str) -> None:
    with pytest.raises(Failure) as caught:
        images.add(OWNER, data)
    assert caught.value.code == code
    assert not list(images.folder.rglob("*.*"))


@given(
    st.binary(max_size=300), st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff\xe0", b"RIFF\x00\x00\x00\x00WEBPVP8 "])
)
def test_any_bytes_are_an_image_or_a_named_failure(tmp_path_factory: pytest.TempPathFactory, data: bytes, head: bytes) -> None:
    images = Images(tmp_path_factory.getbasetemp() / "any", max_side=64, max_bytes=10_000)
    try:
        images.add(OWNER, head + data)
    except Failure as failure:
        assert failure.code.startswith("images.")


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_damaged_image_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, place: int, value: int) -> None:
    images = Images(tmp_path_factory.getbasetemp() / "damaged", max_side=64, max_bytes=10_000)
    for kind in ("PNG", "JPEG", "GIF", "WEBP"):
        data = bytearray(picture(kind))
        data[place % len(data)] = value
        try:
            images.add(OWNER, bytes(data))
        except Failure as failure:
            assert failure.code.startswith("images.")


def test_another_visitors_image_is_as_gone_as_none(images: Images) -> None:
    found = images.add(OWNER, picture())
    for owner, image in (
        (OTHER, found.id),
        (OWNER, "0" * 64),
        (OWNER, "../" * 3 + "etc/passwd"),
        ("../" + OWNER, found.id),
        ("", found.id),
    ):
        with pytest.raises(Failure, match="images.gone"):
            images.get(owner, image)
        images.remove(owner, image)
    assert images.get(OWNER, found.id).path.is_file()


def test_sweeping_removes_what_no_message_has(images: Images) -> None:
    kept, gone = images.add(OWNER, picture(size=(3, 3))), images.add(OWNER, picture(size=(4, 4)))
    (images.folder / OWNER / "x.123.part").write_bytes(b"half")
    images.sweep(lambda owner, image: (owner, image) == (OWNER, kept.id))
    assert [path.stem for path in (images.folder / OWNER).iterdir()] == [kept.id] and not gone.path.exists()
