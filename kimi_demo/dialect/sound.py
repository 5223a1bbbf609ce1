"""Text that can be stored and sent. JSON can bring in halves of surrogate pairs ("\\ud800"), which no UTF-8 can hold."""


def sound(text: str) -> str:
    """`text` with U+FFFD for each half of a surrogate pair that stands alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
