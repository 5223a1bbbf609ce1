"""Which encoding a text file is in. Found over the whole file, in pieces: the first Chinese cell may come after a megabyte of ASCII."""

import codecs
import re
from pathlib import Path

from kimi_demo.dialect.failure import Failure

_PIECE = 1 << 20
_SAMPLE = 64 * 1024
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_UTF32_LE = codecs.BOM_UTF32_LE

# What a prompt file can be in besides Unicode; the detector chooses among these, so that it never answers something exotic.
_CANDIDATES = ["gb18030", "big5", "shift_jis", "euc_kr", "cp1252", "cp1251"]

_MAGIC = (
    (b"PK\x03\x04", "batches.workbook"),
    (b"\xd0\xcf\x11\xe0", "batches.workbook"),
    (b"\x1f\x8b", "batches.packed"),
    (b"BZh", "batches.packed"),
    (b"\xfd7zXZ", "batches.packed"),
    (b"7z\xbc\xaf", "batches.packed"),
    (b"Rar!", "batches.packed"),
    (b"%PDF", "batches.not_text"),
    (b"PAR1", "batches.not_text"),
)


def detect(path: Path) -> str:
    """The codec's name: utf-8, utf-8-sig, utf-16 (with a BOM), utf-16-le, utf-16-be, gb18030, big5, shift_jis, euc_kr, cp1252, cp1251.

    A file that is UTF-8 but for some broken bytes is "utf-8": those are then reported by line. Raises Failure: batches.unreadable,
    batches.workbook, batches.packed, batches.not_text.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_SAMPLE)
            return _of_head(head, path) or _of_all(path, head)
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> Failure:
    return Failure("batches.unreadable", path=path, error=error.strerror or error)


def known(name: str) -> str:
    """The codec that a person means by `name`. Raises Failure("batches.encoding", name=…)."""
    try:
        info = codecs.lookup(name)
    except (LookupError, ValueError):
        raise Failure("batches.encoding", name=name) from None
    if not info._is_text_encoding:  # "hex", "zip", …: transforms, no encodings of text
        raise Failure("batches.encoding", name=name)
    try:  # "idna" and "undefined" are text encodings by name, but nothing to read a file with
        codecs.getincrementaldecoder(info.name)(MARKED).decode(b"a")
    except (UnicodeError, LookupError):
        raise Failure("batches.encoding", name=name) from None
    return {"utf_16": "utf-16", "gbk": "gb18030", "gb2312": "gb18030"}.get(info.name.replace("-", "_"), info.name)


def ordered(encoding: str, path: Path) -> str:
    """For utf-16 and utf-32 that a person chose, where no mark at the file's beginning says the order of bytes: the little-endian one,
    as Windows writes it, or for utf-16 what the bytes look like. Any other encoding as it is. Raises Failure("batches.unreadable")."""
    if encoding.replace("_", "-") not in ("utf-16", "utf-32"):
        return encoding
    try:
        with path.open("rb") as file:
            head = file.read(_SAMPLE)
    except OSError as error:
        raise unreadable(path, error) from error
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        return encoding
    if encoding.endswith("16") and _is_utf16(head[: len(head) // 2 * 2], "utf-16-be"):
        return "utf-16-be"
    return f"{encoding}-le"


def _mark(error: UnicodeError) -> tuple[str, int]:
    """Every unknown byte becomes a lone surrogate; `surrogateescape` itself does not work for UTF-16."""
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff" * (error.end - error.start), error.end


MARKED = "kimi_demo.lone_surrogates"
"""How errors are handled (codecs): bytes that the encoding does not know become lone surrogates."""
codecs.register_error(MARKED, _mark)


def _of_head(head: bytes, path: Path) -> str | None:
    for magic, code in _MAGIC:
        if head.startswith(magic):
            raise Failure(code, path=path)
    if not head.startswith(_UTF32_LE):
        for bom, name in _BOMS:
            if head.startswith(bom):
                return name
    if b"\0" not in head:
        return None
    for name in ("utf-16-le", "utf-16-be"):
        if _is_utf16(head[: len(head) // 2 * 2], name):
            return name
    if head.count(0) > len(head) // 500 + 1:
        raise Failure("batches.not_text", path=path)
    return None


def _is_utf16(data: bytes, name: str) -> bool:
    """UTF-16 without a BOM: it decodes to ordinary characters, and no line feed stands by itself, as it would in 8-bit text."""
    low, high = (data[0::2], data[1::2]) if name == "utf-16-le" else (data[1::2], data[0::2])
    if any(one == 10 and other for one, other in zip(low, high, strict=True)) or 10 in high or 0 not in high:
        return False
    try:
        text = codecs.getincrementaldecoder(name)().decode(data)
    except UnicodeDecodeError:
        return False
    return len(_ORDINARY.findall(text)) > 0.9 * len(text)


# ASCII, Latin, Greek, Cyrillic, East Asian punctuation, kana, ideographs, hangul, full-width forms.
_ORDINARY = re.compile("[\t\r\n -~\u00a0-\u024f\u0370-\u04ff\u2010-\u2027\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uffef]")
_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def _of_all(path: Path, head: bytes) -> str:
    """UTF-8 if all of it is; otherwise by the bytes around the first that are no UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        try:
            while piece := file.read(_PIECE):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
            return "utf-8"
        except UnicodeDecodeError:
            at = max(0, file.tell() - _PIECE)
        file.seek(at)
        sample = _around_high_bytes(file.read(_PIECE))
    good = sum(map(len, _MULTIBYTE.findall(sample)))
    high = sum(byte > 127 for byte in sample)
    if high and good > 0.9 * high:
        return "utf-8"
    return _guess(sample)


def _around_high_bytes(piece: bytes) -> bytes:
    """The lines of `piece` that are not ASCII, up to _SAMPLE bytes."""
    found = b"\n".join(line for line in re.split(rb"[\r\n]+", piece) if not line.isascii())
    return found[:_SAMPLE] if found else piece[:_SAMPLE]


# The characters that Chinese texts mostly consist of, as they are written in the People's Republic and in Taiwan.
_COMMON = {
    "gb18030": frozenset(
        "，。？！、：；（）“”的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然"
        "家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日者意无力它与长把机十民第公此已工使情明"
        "性知全三又关点正业外将两高间由问很最重并物手应向头文体美相见被利什二等产或新己制身果加月话合回特代内信表化老给世位次度任常先教儿原"
        "提比解水名论处各入几认条平系气题活更别打女变四总何电数安少才结反请写介绍简短列举例句字词译述请三"
    ),
    "big5": frozenset(
        "，。？！、：；（）「」的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然"
        "家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日者意無力它與長把機十民第公此已工使情明"
        "性知全三又關點正業外將兩高間由問很最重並物手應向頭文體美相見被利什二等產或新己制身果加月話合回特代內信表化老給世位次度任常先教兒原"
        "提比解水名論處各入幾認條平系氣題活更別打女變四總何電數安少才結反請寫介紹簡短列舉例句字詞譯述"
    ),
}
_MOSTLY = 0.45


def _guess(sample: bytes) -> str:
    chinese = {name: _share(sample, name) for name in _COMMON}
    best_chinese = max(chinese, key=chinese.__getitem__)
    if chinese[best_chinese] >= _MOSTLY:  # in a few words a detector that knows all languages takes one Chinese encoding for the other
        return best_chinese

    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=_CANDIDATES).best()
    return best.encoding if best is not None and best.encoding in _CANDIDATES else "cp1252"


def _share(sample: bytes, name: str) -> float:
    """How many of the characters beyond ASCII are common ones, 0 to 1; 0 for what is not text in this encoding."""
    try:  # the sample may end in the middle of a character
        text = codecs.getincrementaldecoder(name)().decode(sample)
    except UnicodeDecodeError:
        return 0.0
    beyond = [character for character in text if not character.isascii()]
    return sum(character in _COMMON[name] for character in beyond) / len(beyond) if beyond else 0.0
