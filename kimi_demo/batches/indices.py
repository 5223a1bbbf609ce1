"""A set of row numbers in one bit each: 100,000 rows take 12 KB."""

from collections.abc import Iterable, Iterator


class Indices:
    """Row numbers from 0. `len` counts them."""

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._bits = bytearray()
        self._count = 0
        for number in numbers:
            self.add(number)

    def add(self, number: int) -> bool:
        """Whether it was new."""
        byte, bit = number >> 3, 1 << (number & 7)
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1 - len(self._bits)))
        if self._bits[byte] & bit:
            return False
        self._bits[byte] |= bit
        self._count += 1
        return True

    def __contains__(self, number: int) -> bool:
        byte = number >> 3
        return byte < len(self._bits) and bool(self._bits[byte] & (1 << (number & 7)))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return (8 * at + bit for at, byte in enumerate(self._bits) if byte for bit in range(8) if byte >> bit & 1)
