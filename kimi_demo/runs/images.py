"""`Images`: what people put into their messages, as files under the data folder. Whatever comes in is decoded and written anew."""

import base64
import hashlib
import io
import os
import re
import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageOps

from kimi_demo.dialect.failure import Failure
from kimi_demo.owners import OWNER

FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
MOST_PIXELS = 60_000_000
"""Checked before anything is decoded: a file of a few KB can unpack to gigabytes."""
PNG_UP_TO = 1_500_000
"""Bytes of a PNG beyond which an image without transparency is written as JPEG: it travels with every later message."""

_ID = re.compile(r"[0-9a-f]{64}")
_MEDIA = {".png": "image/png", ".jpg": "image/jpeg"}
_VIDEO = re.compile(rb"....ftyp(?!avif|heic|heix|mif1)|\x1aE\xdf\xa3|RIFF....AVI |\x00\x00\x01[\xb3\xba]|FLV", re.S)


@dataclass(frozen=True)
class StoredImage:
    """id: SHA-256 of the file; media_type: image/png or image/jpeg."""

    id: str
    path: Path
    media_type: str


class Images:
    """Files `{folder}/{owner}/{id}.png|jpg`. Blocking; safe to call from several threads.

    max_side: pixels, above which an image is made smaller. max_bytes: of what comes in.
    """

    def __init__(self, folder: Path, *, max_side: int, max_bytes: int) -> None:
        self.folder = folder
        self.max_side = max_side
        self.max_bytes = max_bytes

    def add(self, owner: str, data: bytes) -> StoredImage:
        """Keeps an image. Raises Failure: images.too_large, images.video, images.unreadable."""
        if len(data) > self.max_bytes:
            raise Failure("images.too_large", size=megabytes(len(data)), limit=megabytes(self.max_bytes))
        suffix, content = _written_anew(data, self.max_side)
        found = StoredImage(hashlib.sha256(content).hexdigest(), Path(), _MEDIA[suffix])
        path = self._owners(owner) / f"{found.id}{suffix}"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_bytes(content)
            part.replace(path)  # nobody ever reads half a file
        return StoredImage(found.id, path, found.media_type)

    def get(self, owner: str, image: str) -> StoredImage:
        """Raises Failure("images.gone"), also for another's."""
        if _ID.fullmatch(image):
            for suffix, media_type in _MEDIA.items():
                path = self._owners(owner) / f"{image}{suffix}"
                if path.is_file():
                    return StoredImage(image, path, media_type)
        raise Failure("images.gone")

    def data_url(self, owner: str, image: str) -> str:
        """The image as the server gets it. Raises Failure("images.gone")."""
        found = self.get(owner, image)
        try:
            return f"data:{found.media_type};base64,{base64.b64encode(found.path.read_bytes()).decode()}"
        except OSError:
            raise Failure("images.gone") from None

    def remove(self, owner: str, image: str) -> None:
        """Once more, or of one that never was: nothing."""
        try:
            self.get(owner, image).path.unlink(missing_ok=True)
        except Failure:
            return

    def sweep(self, is_used: Callable[[str, str], bool]) -> None:
        """Removes what no message refers to: images that were chosen and never sent. is_used: (owner, id)."""
        for path in self.folder.glob("*/*"):
            if path.suffix not in _MEDIA or not is_used(path.parent.name, path.stem):
                path.unlink(missing_ok=True)

    def _owners(self, owner: str) -> Path:
        if not OWNER.fullmatch(owner):
            raise Failure("images.gone")
        return self.folder / owner


def megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


def _written_anew(data: bytes, max_side: int) -> tuple[str, bytes]:
    """(suffix, content): pixels only. What else the file held (place and time of a photograph, a script behind it) is left behind."""
    if _VIDEO.match(data):
        raise Failure("images.video")
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(data), formats=FORMATS) as opened:
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            if opened.width * opened.height > MOST_PIXELS:
                raise Failure("images.too_large", size=f"{opened.width} × {opened.height}", limit=f"{MOST_PIXELS / 1e6:.0f} MP")
            photograph = opened.format == "JPEG"
            opened.draft("RGB", (max_side, max_side))
            opened.load()
            upright = ImageOps.exif_transpose(opened)
            transparent = "A" in upright.getbands() or "transparency" in upright.info
            pixels = upright.convert("RGBA" if transparent else "RGB")
    except Failure:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise Failure("images.too_large", size=f"> {MOST_PIXELS / 1e6:.0f} MP", limit=f"{MOST_PIXELS / 1e6:.0f} MP") from None
    except (OSError, ValueError, SyntaxError, MemoryError, EOFError, IndexError, KeyError, TypeError, struct.error):  # what decoders raise
        raise Failure("images.unreadable") from None
    pixels.thumbnail((max_side, max_side), Image.Resampling.LANCZOS)
    if not photograph:
        content = _encoded(pixels, "PNG")
        if transparent or len(content) <= PNG_UP_TO:
            return ".png", content
    return ".jpg", _encoded(pixels, "JPEG")


def _encoded(pixels: Image.Image, kind: str) -> bytes:
    written = io.BytesIO()
    clean = Image.new(pixels.mode, pixels.size)
    clean.paste(pixels)
    clean.save(written, kind, quality=88)
    return written.getvalue()
