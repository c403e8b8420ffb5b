"""Reads zip archives that nobody vouches for.

The archive has to be what its directory says, byte for byte: no entries that overlap or lie outside, no data before or
behind, no second meaning for another program. Only what a directory of a bounded size lists is looked at.
"""

from __future__ import annotations

import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from .entry import MAX_ENTRIES, ArchiveEntry, ArchiveError, checked_path, too_large

MAX_DIRECTORY_BYTES = 16 * 1024 * 1024
"""How large the list of entries may be."""

_END = struct.Struct('<4s4H2LH')
_CENTRAL = struct.Struct('<4s6H3L5H2L')
_LOCAL = struct.Struct('<4s5H3L2H')
_MAX_COMMENT = 0xFFFF
_CHUNK_BYTES = 64 * 1024
_ENCRYPTED = 0x0001 | 0x0040 | 0x2000
_UTF8 = 0x0800
_STORED, _DEFLATED = 0, 8
_UNIX, _MACOS = 3, 19
_TOO_LARGE = 0xFFFFFFFF


@dataclass(frozen=True, kw_only=True, slots=True)
class _Listed:
    """An entry as the directory of the archive lists it."""

    name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    system: int
    mode: int
    offset: int

    @property
    def text(self) -> str:
        try:
            return self.name.decode('utf-8' if self.flags & _UTF8 or self.name.isascii() else 'cp437')
        except UnicodeDecodeError:
            raise ArchiveError(f'has the name {self.name[:80]!r}, which is not UTF-8') from None

    def entry(self) -> ArchiveEntry:
        path = checked_path(self.text)
        mode = self.mode if self.system in (_UNIX, _MACOS) else 0
        if self.text.endswith('/') or not path:
            return ArchiveEntry(path=path, kind='folder')
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            return ArchiveEntry(path=path, kind='other')
        return ArchiveEntry(path=path, kind='file', size=self.size, executable=bool(mode & stat.S_IXUSR))


class ZipReader:
    """A zip archive."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        """Read from a file that can seek; `limit` is how many bytes may be in the archive."""
        self._file = file
        self._limit = limit

    def entries(self) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
        """The entries, each with its content."""
        listed = self._list()
        if sum(each.size for each in listed) > self._limit:
            raise too_large(self._limit)
        for each in listed:
            yield each.entry(), self._content(each)

    def _list(self) -> list[_Listed]:
        start, end = self._directory()
        self._file.seek(start)
        data = self._file.read(end - start)
        listed = list(islice(_parse(data), MAX_ENTRIES + 1))
        if len(listed) > MAX_ENTRIES:
            raise ArchiveError(f'has more than {MAX_ENTRIES:,} entries')
        at = 0
        for each in sorted(listed, key=lambda each: each.offset):
            if each.offset < at:
                raise ArchiveError('has entries that overlap')
            at = self._data_start(each, start) + each.packed
            if at > start:
                raise ArchiveError('has entries that lie outside of it')
        return listed

    def _directory(self) -> tuple[int, int]:
        """Where the list of entries begins and ends."""
        size = self._file.seek(0, 2)
        before = max(0, size - _END.size - _MAX_COMMENT)
        self._file.seek(before)
        tail = self._file.read()
        at = tail.rfind(b'PK\5\6')
        if at < 0 or len(tail) - at < _END.size:
            raise ArchiveError('is damaged or cut off: the list of its entries is missing')
        _, disk, first_disk, here, count, length, start, comment = _END.unpack_from(tail, at)
        if at + _END.size + comment != len(tail) or start + length != before + at:
            reason = 'is too large' if _TOO_LARGE in (length, start) else 'has data before or behind its entries'
            raise ArchiveError(reason)
        if disk or first_disk or here != count:
            raise ArchiveError('is one part of several')
        if length > MAX_DIRECTORY_BYTES:
            raise ArchiveError(f'has a list of entries of {length:,} bytes, at most {MAX_DIRECTORY_BYTES:,} are read')
        return start, start + length

    def _data_start(self, listed: _Listed, limit: int) -> int:
        """Where the content of an entry begins, behind its own header, which must have the same name."""
        self._file.seek(listed.offset)
        header = self._file.read(_LOCAL.size)
        if listed.offset + _LOCAL.size > limit or header[:4] != b'PK\3\4':
            raise ArchiveError('has entries that lie outside of it')
        *_, name_length, extra_length = _LOCAL.unpack(header)
        if self._file.read(name_length) != listed.name:
            raise ArchiveError('has an entry with two names')
        return listed.offset + _LOCAL.size + name_length + extra_length

    def _content(self, listed: _Listed) -> Iterator[bytes]:
        if listed.flags & _ENCRYPTED:
            raise ArchiveError('is encrypted')
        if listed.method not in (_STORED, _DEFLATED):
            raise ArchiveError(f'uses a compression (method {listed.method}) that is not read; deflate is')
        self._file.seek(self._data_start(listed, _TOO_LARGE))
        pieces = self._packed(listed.packed)
        crc, size = 0, 0
        for piece in pieces if listed.method == _STORED else _inflated(pieces):
            size += len(piece)
            crc = zlib.crc32(piece, crc)
            if size > listed.size:
                break
            yield piece
        if (size, crc) != (listed.size, listed.crc):
            raise ArchiveError(f'is damaged: {listed.text[:80]!r} is not what the list of entries says')

    def _packed(self, left: int) -> Iterator[bytes]:
        at = self._file.tell()
        while left:
            # The position in the file may have moved since the last piece.
            self._file.seek(at)
            piece = self._file.read(min(left, _CHUNK_BYTES))
            at += len(piece)
            left -= len(piece)
            yield piece


def _parse(data: bytes) -> Iterator[_Listed]:
    at = 0
    while at < len(data):
        if data[at : at + 4] != b'PK\1\2' or at + _CENTRAL.size > len(data):
            raise ArchiveError('is damaged: the list of its entries cannot be read')
        fields = _CENTRAL.unpack_from(data, at)
        _, made_by, _, flags, method, _, _, crc, packed, size, name, extra, comment, _, _, attributes, offset = fields
        at += _CENTRAL.size
        if _TOO_LARGE in (packed, size, offset):
            raise ArchiveError('is too large')
        yield _Listed(
            name=data[at : at + name],
            flags=flags,
            method=method,
            crc=crc,
            packed=packed,
            size=size,
            system=made_by >> 8,
            mode=attributes >> 16,
            offset=offset,
        )
        at += name + extra + comment


def _inflated(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress pieces, yielding one small piece at a time, however large the whole is."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        for packed in pieces:
            while packed and not inflate.eof:
                yield inflate.decompress(packed, _CHUNK_BYTES)
                packed = inflate.unconsumed_tail
        while rest := inflate.decompress(b'', _CHUNK_BYTES):
            yield rest
    except zlib.error:
        raise ArchiveError('is damaged: what is compressed in it cannot be read') from None
