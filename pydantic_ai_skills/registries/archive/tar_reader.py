"""Reads `.tar.gz` archives that nobody vouches for: in pieces, in one pass, and no more than a limit."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Literal

from .entry import MAX_ENTRIES, ArchiveEntry, ArchiveError, checked_path, too_large

MAX_HEADER_BYTES = 64 * 1024
"""How large a header with a long name or with more fields may be."""

MAX_MEMBERS = 100_000
"""How many compressed parts, one after the other, a file may have."""

_BLOCK = 512
_CHUNK_BYTES = 64 * 1024
_HEADER = struct.Struct('100s8s16x12s12x8sc100s8s80x155s12x')
_MAGIC = b'\x1f\x8b'
_OCTAL = re.compile(rb'[0-7]{0,12}')
_RECORD = re.compile(rb'([0-9]{1,6}) ([^=\n]{1,256})=')
_LONG_NAME, _LONG_LINK, _MORE, _MORE_FOR_ALL = b'L', b'K', b'x', b'g'
_ABOUT_OTHERS = (_LONG_NAME, _LONG_LINK, _MORE, _MORE_FOR_ALL)
_FILES = (b'0', b'\0', b'7')
_WITHOUT_CONTENT = (b'1', b'2', b'3', b'4', b'5', b'6')
_FOLDER, _SPARSE = b'5', b'S'


class TarReader:
    """A compressed tar archive."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        """Read from a file that can seek; `limit` is how many bytes may be in the archive."""
        self._file = file
        self._limit = limit

    def entries(self) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
        """The entries, each with its content, which can be read until the next entry."""
        self._file.seek(0)
        stream = _GzipStream(self._file, self._limit)
        about: dict[str, bytes] = {}
        for _ in range(MAX_ENTRIES + 1):
            header = stream.read(_BLOCK)
            if not header.strip(b'\0'):
                _expect_the_end(stream)
                return
            kind, size, entry = _parse(header, about)
            if kind in _ABOUT_OTHERS:
                _note(about, kind, stream, size)
                continue
            about.clear()
            content = _Content(stream, size)
            yield entry, content
            content.skip()
        raise ArchiveError(f'has more than {MAX_ENTRIES:,} entries')


class _Content:
    """The content of an entry, and the padding behind it."""

    def __init__(self, stream: _GzipStream, size: int) -> None:
        self._stream = stream
        self._left = size
        self._padding = -size % _BLOCK

    def __iter__(self) -> _Content:
        return self

    def __next__(self) -> bytes:
        if not self._left:
            raise StopIteration
        piece = self._stream.read(min(self._left, _CHUNK_BYTES))
        if not piece:
            raise ArchiveError('is cut off')
        self._left -= len(piece)
        return piece

    def skip(self) -> None:
        for _ in self:
            pass
        self._stream.read(self._padding)


class _GzipStream:
    """The decompressed content of a file, of which no more than a limit is read."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._file = file
        self._limit = self._left = limit
        self._members = 1
        self._inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._packed = b''
        self._buffer = bytearray()

    def read(self, count: int) -> bytes:
        """The next bytes; fewer only at the end."""
        while len(self._buffer) < count and self._inflate_more():
            pass
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def _inflate_more(self) -> bool:
        """Decompress the next piece, and return whether there was one."""
        if self._inflate.eof and not self._next_member():
            return False
        packed = self._packed or self._file.read(_CHUNK_BYTES)
        try:
            piece = self._inflate.decompress(packed, _CHUNK_BYTES)
        except zlib.error:
            raise ArchiveError('is damaged: what is compressed in it cannot be read') from None
        self._packed = self._inflate.unconsumed_tail
        if not packed and not piece:
            raise ArchiveError('is cut off')
        self._left -= len(piece)
        if self._left < 0:
            raise too_large(self._limit)
        self._buffer += piece
        return True

    def _next_member(self) -> bool:
        """Move on to the next compressed part, and return whether there is one. Zeros may fill up the end."""
        packed = self._inflate.unused_data or self._file.read(_CHUNK_BYTES)
        while packed and not packed.strip(b'\0'):
            packed = self._file.read(_CHUNK_BYTES)
        if not packed:
            return False
        self._members += 1
        if packed[:2] != _MAGIC or self._members > MAX_MEMBERS:
            raise ArchiveError('has data behind its end')
        self._packed = packed
        self._inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
        return True


def _parse(header: bytes, about: dict[str, bytes]) -> tuple[bytes, int, ArchiveEntry]:
    """The type, the size and the entry that a header describes; `about` holds what earlier headers say about it."""
    if len(header) < _BLOCK:
        raise ArchiveError('is cut off')
    name, mode, size, checksum, kind, _, magic, prefix = _HEADER.unpack(header)
    if _number(checksum) != sum(header[:148]) + 8 * 32 + sum(header[156:]):
        raise ArchiveError('is damaged, or holds something else than a tar archive')
    if kind in _ABOUT_OTHERS:
        return kind, _number(size), ArchiveEntry(path='', kind='other')
    if kind == _SPARSE:
        raise ArchiveError('has a sparse file in it; pack it as it is')
    text = about.get('path', _full_name(name, prefix, magic)).decode('utf-8', 'surrogateescape')
    length = 0 if kind in _WITHOUT_CONTENT else _decimal(about['size']) if 'size' in about else _number(size)
    is_executable = bool(_number(mode) & 0o100)
    return (
        kind,
        length,
        ArchiveEntry(path=checked_path(text), kind=_kind(kind, text), size=length, executable=is_executable),
    )


def _full_name(name: bytes, prefix: bytes, magic: bytes) -> bytes:
    folder = prefix.partition(b'\0')[0] if magic.startswith(b'ustar\0') else b''
    name = name.partition(b'\0')[0]
    return folder + b'/' + name if folder else name


def _kind(kind: bytes, name: str) -> Literal['file', 'folder', 'other']:
    if kind in _FILES and not name.endswith('/'):
        return 'file'
    return 'folder' if kind == _FOLDER or kind in _FILES else 'other'


def _note(about: dict[str, bytes], kind: bytes, stream: _GzipStream, size: int) -> None:
    """Read a header that describes the next entry, or all of them, and note in `about` what it says."""
    if size > MAX_HEADER_BYTES:
        raise ArchiveError(f'has a header of {size:,} bytes, at most {MAX_HEADER_BYTES:,} are read')
    content = _Content(stream, size)
    data = b''.join(content)
    content.skip()
    if kind == _LONG_NAME:
        about['path'] = data.partition(b'\0')[0]
    elif kind != _LONG_LINK:
        fields = dict(_records(data))
        if any(name.startswith('GNU.sparse') for name in fields):
            raise ArchiveError('has a sparse file in it; pack it as it is')
        wanted = {name: value for name, value in fields.items() if name in ('path', 'size')}
        if wanted and kind == _MORE_FOR_ALL:
            raise ArchiveError('gives one name or size to all of its entries')
        about.update(wanted)


def _records(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The fields of an extended header: `length name=value`, each with a line end behind it."""
    at = 0
    while at < len(data):
        record = _RECORD.match(data, at)
        end = at + int(record[1]) if record else 0
        if record is None or not record.end() < end <= len(data):
            raise ArchiveError('is damaged: a header of it cannot be read')
        yield record[2].decode('utf-8', 'replace'), data[record.end() : end - 1]
        at = end


def _number(field: bytes) -> int:
    """A number in octal digits, or in binary if it is too large for them."""
    if field[:1] == b'\x80':
        return int.from_bytes(field[1:])
    digits = field.strip(b' \0')
    if not _OCTAL.fullmatch(digits):
        raise ArchiveError('is damaged: a number in it cannot be read')
    return int(digits or b'0', 8)


def _decimal(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > 19:
        raise ArchiveError('is damaged: a number in it cannot be read')
    return int(digits)


def _expect_the_end(stream: _GzipStream) -> None:
    while rest := stream.read(_CHUNK_BYTES):
        if rest.strip(b'\0'):
            raise ArchiveError('has data behind its end')
