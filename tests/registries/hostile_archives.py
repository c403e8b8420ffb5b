"""Archives that nobody should be able to do harm with, made byte for byte."""

from __future__ import annotations

import gzip
import struct
import tarfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.folders import skill_md
from tests.registries.web_server import make_tar, make_zip, skill_files

SKILL = skill_md('pdf').encode()


@dataclass(kw_only=True)
class ZipEntry:
    """An entry of a zip archive, in which everything can be a lie."""

    name: bytes
    data: bytes = b''
    packed: bytes | None = None
    """What stands for the data, as deflate; the data compressed when not given."""
    method: int = 8
    flags: int = 0
    size: int | None = None
    crc: int | None = None
    local_name: bytes | None = None
    system: int = 3
    mode: int = 0o100644
    offset: int | None = None
    """Where the entry is said to be."""

    @property
    def body(self) -> bytes:
        return deflate(self.data) if self.packed is None else self.packed


def zip_of(*entries: ZipEntry, before: bytes = b'', behind: bytes = b'', **end: int) -> bytes:
    """A zip archive of these entries."""
    data, directory = bytearray(before), bytearray()
    for entry in entries:
        size = len(entry.data) if entry.size is None else entry.size
        crc = zlib.crc32(entry.data) if entry.crc is None else entry.crc
        name = entry.name if entry.local_name is None else entry.local_name
        common = (entry.flags, entry.method, 0, 0, crc, len(entry.body), size)
        offset = len(data) if entry.offset is None else entry.offset
        if entry.offset is None:
            data += struct.pack('<4s5H3L2H', b'PK\3\4', 20, *common, len(name), 0) + name + entry.body
        rest = (0, 0, 0, 0, entry.mode << 16, offset)
        directory += struct.pack('<4s6H3L5H2L', b'PK\1\2', entry.system << 8 | 20, 20, *common, len(entry.name), *rest)
        directory += entry.name
    fields = {'disk': 0, 'start': 0, 'here': len(entries) % 65536, 'count': len(entries) % 65536}
    fields |= {'length': len(directory), 'offset': len(data), 'comment': 0} | end
    return bytes(data + directory + struct.pack('<4s4H2LH', b'PK\5\6', *fields.values()) + behind)


def tar_of(*blocks: bytes, end: bytes = bytes(1024)) -> bytes:
    return gzip.compress(b''.join(blocks) + end)


def header(
    name: str, size: int = 0, kind: bytes = b'0', *, mode: int = 0o644, link: str = '', **fields: bytes
) -> bytes:
    """A header of a tar archive; `fields` replace what stands in it, and `checksum` its sum."""
    info = tarfile.TarInfo('x')
    info.size, info.mode, info.type, info.linkname = 0, mode, kind, link
    block = bytearray(info.tobuf(tarfile.USTAR_FORMAT)[:512])
    block[:100] = name.encode('utf-8', 'surrogateescape')[:100].ljust(100, b'\0')
    block[124:136] = fields.get('number', b'%011o\0' % size)
    block[345:500] = fields.get('prefix', b'').ljust(155, b'\0')
    block[148:156] = b' ' * 8
    block[148:156] = fields.get('checksum', b'%06o\0 ' % sum(block))
    return bytes(block)


def file(name: str, data: bytes = SKILL, kind: bytes = b'0', **fields: bytes) -> bytes:
    return header(name, len(data), kind, mode=0o644, link='', **fields) + data + bytes(-len(data) % 512)


def pax(kind: bytes = b'x', **records: str) -> bytes:
    lines = b''
    for name, value in records.items():
        line = f' {name.replace("_", ".")}={value}\n'.encode()
        length = len(line) + 1
        while len(str(length)) + len(line) != length:
            length += 1
        lines += str(length).encode() + line
    return file('pax', lines, kind)


def deflate(data: bytes) -> bytes:
    work = zlib.compressobj(9, zlib.DEFLATED, -15)
    return work.compress(data) + work.flush()


def zeros(count: int) -> bytes:
    """Many zero bytes, deflated. Each megabyte begins anew, so that the same block stands for all of them."""
    work = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = work.compress(bytes(1 << 20)) + work.flush(zlib.Z_FULL_FLUSH)
    return block * (count >> 20) + work.flush()


def zeros_gzipped(count: int, start: bytes) -> bytes:
    """A beginning and many zero bytes, compressed; the checksum behind them is wrong."""
    work = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = work.compress(start) + work.flush(zlib.Z_FULL_FLUSH)
    return b'\x1f\x8b\x08' + bytes(7) + first + zeros(count) + bytes(8)


GOOD = ZipEntry(name=b'pdf/SKILL.md', data=SKILL)
GB = 1024**3


class Hostile(NamedTuple):
    """An archive, and what becomes of it."""

    name: str
    make: Callable[[], bytes]
    why: str
    """A part of the error."""


def _zip(name: str, why: str, *entries: ZipEntry) -> Hostile:
    return Hostile(f'zip: {name}', lambda: zip_of(GOOD, *entries), why)


def _tar(name: str, why: str, *blocks: bytes) -> Hostile:
    return Hostile(f'tar: {name}', lambda: tar_of(file('pdf/SKILL.md'), *blocks), why)


def _many(count: int) -> bytes:
    """An archive with many empty files; all share one place, so that it is small."""
    entries = [ZipEntry(name=b'pdf/%d' % number, packed=b'', method=0) for number in range(count)]
    return zip_of(GOOD, *entries)


ESCAPES = ('../evil', '/evil', 'a/../../evil', 'a\\..\\evil', '..\\evil', 'C:/evil', 'c:evil', 'a/..', '//host/evil')
OUTSIDE = 'which leads out of the archive'
DAMAGED = 'is damaged'

REFUSED: Sequence[Hostile] = (
    *(_zip(f'leads out by {name}', OUTSIDE, ZipEntry(name=name.encode(), data=b'x')) for name in ESCAPES),
    *(_tar(f'leads out by {name}', OUTSIDE, file(name, b'x')) for name in ESCAPES),
    _zip('a name with NUL', OUTSIDE, ZipEntry(name=b'a.md\0.py')),
    _zip('a name that is not UTF-8', 'is not UTF-8', ZipEntry(name=b'\xff\xfe', flags=0x800)),
    _zip('two entries of one name', 'has two entries of the name', GOOD),
    _zip('names that only look different', 'has two entries of the name',
         ZipEntry(name='pdf/é'.encode(), flags=0x800), ZipEntry(name='pdf/e\u0301'.encode(), flags=0x800)),
    _zip('a file that is a folder too', 'both as a file and as a folder', ZipEntry(name=b'pdf/SKILL.md/x')),
    _zip('an entry with two names', 'two names', ZipEntry(name=b'pdf/a', local_name=b'../b')),
    _zip('an encrypted entry', 'is encrypted', ZipEntry(name=b'pdf/x', flags=1)),
    _zip('strong encryption', 'is encrypted', ZipEntry(name=b'pdf/x', flags=0x41)),
    *(_zip(f'compression {method}', f'method {method}', ZipEntry(name=b'pdf/x', method=method)) for method in (1, 9, 12, 14, 93, 99)),
    _zip('more bytes than listed', DAMAGED, ZipEntry(name=b'pdf/x', data=b'x' * 999, size=9)),
    _zip('fewer bytes than listed', DAMAGED, ZipEntry(name=b'pdf/x', data=b'x', size=99)),
    _zip('another checksum', DAMAGED, ZipEntry(name=b'pdf/x', data=b'x', crc=1)),
    _zip('no deflate', DAMAGED, ZipEntry(name=b'pdf/x', data=b'x', packed=b'\xff\xff\xff')),
    _zip('a size of 4 GB', 'is too large', ZipEntry(name=b'pdf/x', size=0xFFFFFFFF)),
    _zip('an entry inside of another', 'overlap', ZipEntry(name=b'pdf/x', offset=1)),
    _zip('an entry that is another one too', 'overlap', ZipEntry(name=b'pdf/SKILL.md', data=SKILL, offset=0)),
    _zip('an entry behind the end', 'outside', ZipEntry(name=b'pdf/x', offset=1_000_000)),
    Hostile('zip: an entry that runs over the end', lambda: _cut_in_the_middle(), 'outside|overlap|before or behind'),
    _zip('10 GB that are listed', 'unpacks to more than', *(ZipEntry(name=b'pdf/%d' % n, size=GB) for n in range(10))),
    Hostile('zip: 1 GB that is listed as 9 bytes', lambda: zip_of(GOOD, ZipEntry(name=b'pdf/x', packed=zeros(GB), size=9)), DAMAGED),
    Hostile('zip: 60 MB from 60 kB', lambda: zip_of(GOOD, ZipEntry(name=b'pdf/x', packed=zeros(60 << 20), size=60 << 20)), 'unpacks to more than'),
    Hostile('zip: 50,001 files', lambda: _many(50_001), 'more than 50,000 files'),
    Hostile('zip: 100,001 entries', lambda: _many(100_001), 'more than 100,000 entries'),
    Hostile('zip: a list of 17 MB', lambda: zip_of(*(ZipEntry(name=b'x' * 60_000) for _ in range(290))), 'a list of entries of 17'),
    Hostile('zip: cut off', lambda: zip_of(GOOD)[:-30], 'cut off'),
    Hostile('zip: only a beginning', lambda: b'PK\3\4', 'cut off'),
    Hostile('zip: data behind', lambda: zip_of(GOOD, behind=b'x'), 'before or behind'),
    Hostile('zip: data before', lambda: zip_of(GOOD, before=b'PK\3\4', offset=0), 'before or behind'),
    Hostile('zip: an end that is too far', lambda: zip_of(GOOD, offset=0xFFFFFFFF), 'too large'),
    Hostile('zip: a part of several', lambda: zip_of(GOOD, disk=1), 'one part of several'),
    Hostile('zip: a count that is wrong', lambda: zip_of(GOOD, here=2), 'one part of several'),
    Hostile('zip: junk in the list', lambda: _junk(), 'cannot be read'),
    Hostile('tar: cut off', lambda: make_tar(skill_files('pdf'))[:-30], 'cut off'),
    Hostile('tar: cut off in a file', lambda: gzip.compress(header('pdf/SKILL.md', 9999) + b'x'), 'cut off'),
    Hostile('tar: cut off in a header', lambda: gzip.compress(header('pdf/SKILL.md')[:300]), 'cut off'),
    Hostile('tar: junk behind', lambda: make_tar(skill_files('pdf')) + b'junk', 'data behind its end'),
    Hostile('tar: entries behind the end', lambda: tar_of(file('pdf/SKILL.md'), bytes(1024), file('x')), 'data behind its end'),
    Hostile('tar: no gzip', lambda: b'\x1f\x8b' + b'junk' * 99, DAMAGED),
    Hostile('tar: no tar', lambda: gzip.compress(b'junk' * 999), DAMAGED),
    Hostile('tar: a wrong sum', lambda: tar_of(header('x', checksum=b'000001\0 ')), 'something else than a tar'),
    _tar('a size that is no number', 'a number in it cannot be read', header('x', number=b'99999999999\0')),
    _tar('a size below 0', 'a number in it cannot be read', header('x', number=b'-0000000001\0')),
    _tar('a size of many digits', 'cut off', header('x', number=b'\x80' + b'\x7f' * 11)),
    _tar('a sparse file', 'sparse', header('x', 0, b'S')),
    _tar('a sparse file of another kind', 'sparse', pax(GNU_sparse_major='1'), file('x')),
    _tar('a name for all', 'to all of its entries', pax(b'g', path='x')),
    _tar('a header that is no header', 'a header of it cannot be read', file('pax', b'99 path=x\n', b'x')),
    _tar('a header without an end', 'a header of it cannot be read', file('pax', b'junk', b'x')),
    _tar('a length that is no number', 'a number in it cannot be read', pax(size='-1'), file('x')),
    _tar('a length of many digits', 'a number in it cannot be read', pax(size='9' * 30), file('x')),
    _tar('a way out by an extended header', OUTSIDE, pax(path='../evil'), file('x')),
    _tar('a way out by a long name', OUTSIDE, file('L', b'/evil\0', b'L'), file('x')),
    _tar('a way out by a prefix', OUTSIDE, file('evil', prefix=b'a/..')),
    _tar('a header of 1 GB', 'a header of 1,073,741,824 bytes', header('pax', GB, b'x')),
    _tar('a name of 1 GB', 'a header of 1,073,741,824 bytes', header('L', GB, b'L')),
    _tar('two entries of one name', 'has two entries of the name', file('pdf/SKILL.md')),
    Hostile('tar: 1 GB', lambda: zeros_gzipped(GB, file('pdf/SKILL.md') + header('pdf/x', GB)), 'unpacks to more than'),
    Hostile('tar: 1 GB behind the end', lambda: zeros_gzipped(GB, file('pdf/SKILL.md')), 'unpacks to more than'),
    Hostile('tar: 1 GB in a link', lambda: zeros_gzipped(GB, file('pdf/SKILL.md') + header('pdf/x', GB, b'Z')), 'unpacks to more than'),
    Hostile('tar: 100,001 entries', lambda: gzip.compress(header('d', 0, b'5') * 100_001, 0), 'than 100,000 entries'),
    Hostile('tar: 100,001 headers', lambda: gzip.compress(pax(comment='x') * 100_001, 0), 'than 100,000 entries'),
    Hostile('tar: 100,001 parts', lambda: gzip.compress(b'') * 100_001, 'data behind its end'),
    Hostile('tar without compression', lambda: gzip.decompress(make_tar(skill_files('pdf'))), 'is not an archive of a kind'),
    Hostile('7z', lambda: b"7z\xbc\xaf'\x1c" + bytes(99), 'is not an archive of a kind'),
    Hostile('nothing', lambda: b'', 'is not an archive of a kind'),
    Hostile('a page', lambda: b'<!DOCTYPE html><title>Not found</title>', 'is not an archive of a kind'),
)  # fmt: skip
"""Archives of which nothing is used."""


def _cut_in_the_middle() -> bytes:
    """The content of its entry reaches into the list of entries."""
    whole = bytearray(zip_of(GOOD))
    at = whole.rindex(b'PK\1\2')
    struct.pack_into('<L', whole, at + 20, len(GOOD.body) + 60)
    return bytes(whole)


def _junk() -> bytes:
    whole = bytearray(zip_of(GOOD))
    at = whole.rindex(b'PK\1\2')
    whole[at : at + 4] = b'junk'
    return bytes(whole)


def _link(kind: int, target: bytes = b'/outside') -> ZipEntry:
    return ZipEntry(name=b'pdf/link', data=target, mode=kind)


LEFT_OUT: Sequence[Hostile] = (
    *(_zip(name, 'pdf/link', _link(mode)) for name, mode in
      (('a link', 0o120777), ('a device', 0o60644), ('a pipe', 0o10644), ('a socket', 0o140644))),
    *(_tar(name, 'pdf/link', header('pdf/link', 0, kind, link='/outside')) for name, kind in
      (('a link', b'2'), ('a hard link', b'1'), ('a device', b'4'), ('a terminal', b'3'), ('a pipe', b'6'), ('a new kind', b'Z'))),
    _tar('a file behind a link', 'pdf/link', header('pdf/link', 0, b'2', link='/outside'), file('pdf/link/evil', b'x')),
    _zip('a name of 1,100 characters', 'x' * 99, ZipEntry(name=b'pdf/' + b'x' * 1_100)),
    _zip('33 folders', 'a/a/a/a', ZipEntry(name=b'pdf/' + b'a/' * 33 + b'x')),
    _zip('a name that turns around', 'pdf/', ZipEntry(name='pdf/\u202egpj.py'.encode(), flags=0x800)),
    _zip('a name with a line end', 'pdf/', ZipEntry(name=b'pdf/a\nb')),
    _zip('a folder of git', 'pdf/.git/config', ZipEntry(name=b'pdf/.git/config')),
    _tar('a name that is not UTF-8', 'pdf/', file('pdf/\udcff', b'x')),
)  # fmt: skip
"""Archives with something in them that is not unpacked; `why` is a part of its name."""

FINE: Sequence[Hostile] = (
    Hostile('zip', lambda: make_zip(skill_files('pdf')), 'pdf'),
    Hostile('zip: stored', lambda: zip_of(ZipEntry(name=b'pdf/SKILL.md', data=SKILL, packed=SKILL, method=0)), 'pdf'),
    Hostile('zip: folders', lambda: zip_of(ZipEntry(name=b'pdf/', mode=0o40755), ZipEntry(name=b'./'), GOOD), 'pdf'),
    Hostile('zip: a byte more than is read at once', lambda: zip_of(GOOD, ZipEntry(name=b'pdf/x', data=bytes(65_537))), 'pdf'),
    Hostile('tar: a byte more than is read at once', lambda: tar_of(file('pdf/SKILL.md'), file('pdf/x', bytes(65_537))), 'pdf'),
    Hostile('zip: a comment', lambda: zip_of(GOOD, comment=4, behind=b'hey!'), 'pdf'),
    Hostile('zip: old letters', lambda: zip_of(GOOD, ZipEntry(name='pdf/ü'.encode('cp437'))), 'pdf'),
    Hostile('zip: of another system', lambda: zip_of(GOOD, ZipEntry(name=b'pdf/x', system=0, mode=0o120777)), 'pdf'),
    Hostile('tar', lambda: make_tar(skill_files('pdf')), 'pdf'),
    Hostile('tar: without an end', lambda: tar_of(file('pdf/SKILL.md'), end=b''), 'pdf'),
    Hostile('tar: in parts, filled up', lambda: _in_parts(), 'pdf'),
    Hostile('tar: a folder, the old way', lambda: tar_of(header('pdf/'), file('pdf/SKILL.md')), 'pdf'),
    Hostile('tar: long names', lambda: tar_of(file('L', b'pdf/SKILL.md\0', b'L'), file('K', b'x', b'K'), file('x')), 'pdf'),
    Hostile('tar: more fields', lambda: tar_of(pax(b'g', comment='c0ffee'), pax(path='pdf/SKILL.md', size=str(len(SKILL))), file('x')), 'pdf'),
    Hostile('tar: a prefix', lambda: tar_of(file('SKILL.md', prefix=b'pdf')), 'pdf'),
    Hostile('tar: a large number', lambda: tar_of(file('pdf/SKILL.md', number=b'\x80' + len(SKILL).to_bytes(11))), 'pdf'),
)  # fmt: skip
"""Archives that are unusual and in order."""


def _in_parts() -> bytes:
    data = file('pdf/SKILL.md') + bytes(1024)
    return gzip.compress(data[:100]) + gzip.compress(b'') + gzip.compress(data[100:]) + bytes(100_000)
