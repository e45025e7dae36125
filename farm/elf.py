"""Names that a shared library exports, read from its ELF file (64 bit, little endian) without loading it."""

import struct
from collections.abc import Iterator

_SECTIONS_AT, _SECTION_COUNT_AT = 0x28, 0x3C
_DYNSYM = 11
_SYMBOL = struct.Struct("<IBBHQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_FUNCTION = 2
_BOUND = (1, 2)  # global, weak


def exported_functions(data: bytes) -> tuple[str, ...]:
    """The functions that a library defines for others, sorted. Raises ValueError for bytes that are no library."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    try:
        return tuple(sorted(_exports(data)))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"a broken ELF file: {error}") from error


def _exports(data: bytes) -> Iterator[str]:
    (at,) = struct.unpack_from("<Q", data, _SECTIONS_AT)
    (count,) = struct.unpack_from("<H", data, _SECTION_COUNT_AT)
    sections = [_SECTION.unpack_from(data, at + i * _SECTION.size) for i in range(count)]
    for section in sections:
        if section[1] != _DYNSYM:
            continue
        names = sections[section[6]]
        strings = data[names[4] : names[4] + names[5]]
        for offset in range(section[4], section[4] + section[5], _SYMBOL.size):
            name, info, _, index, _, _ = _SYMBOL.unpack_from(data, offset)
            if index != 0 and info & 15 == _FUNCTION and info >> 4 in _BOUND:
                yield strings[name : strings.index(b"\0", name)].decode()
