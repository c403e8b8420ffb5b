"""The filter as a program, run by a small model of the kernel's machine."""

from __future__ import annotations

import errno
import platform
import struct
from pathlib import Path

import pytest

from pydantic_ai_skills.execution.bubblewrap.seccomp import DENIED, SHARED_MEMORY, seccomp_filter

ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000
ARCHITECTURES = {'x86_64': 0xC000003E, 'aarch64': 0xC00000B7}
CLONE = {'x86_64': 56, 'aarch64': 220}
SOCKET = {'x86_64': 41, 'aarch64': 198}
READ = {'x86_64': 0, 'aarch64': 63}


def verdict(
    machine: str, number: int, *arguments: int, architecture: int | None = None, shared_memory: bool = True
) -> int:
    program = seccomp_filter(machine, shared_memory=shared_memory)
    assert program is not None
    wanted = ARCHITECTURES[machine] if architecture is None else architecture
    data = struct.pack('<IIQ6Q', number, wanted, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = list(struct.iter_unpack('=HBBI', program))
    position = accumulator = 0
    while True:
        code, true, false, value = steps[position]
        position += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from('<I', data, value)
        elif code == 0x06:
            return value
        else:
            outcome = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
            position += true if outcome else false


@pytest.mark.parametrize('machine', ['x86_64', 'aarch64'])
def test_each_denied_call_is_denied_and_others_are_not(machine: str) -> None:
    column = list(ARCHITECTURES).index(machine)
    denied = {numbers[column] for numbers in DENIED.values()} - {None}
    for number in range(600):
        answer = verdict(machine, number)
        if number in denied:
            assert answer == ERROR | errno.EPERM
        elif number in (435, 437):
            assert answer == ERROR | errno.ENOSYS
        elif number == SOCKET[machine]:
            assert answer == ERROR | errno.EAFNOSUPPORT
        else:
            assert answer == ALLOW


@pytest.mark.parametrize('machine', ['x86_64', 'aarch64'])
def test_calls_are_judged_by_their_arguments(machine: str) -> None:
    assert verdict(machine, CLONE[machine], 0x3D0F00) == ALLOW  # a thread
    for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(machine, CLONE[machine], flag | 17) == ERROR | errno.EPERM
    for family in (1, 2, 10, 16):
        assert verdict(machine, SOCKET[machine], family) == ALLOW
    for family in (0, 17, 38, 40):
        assert verdict(machine, SOCKET[machine], family) == ERROR | errno.EAFNOSUPPORT


def test_calls_of_another_architecture_kill_or_fail() -> None:
    assert verdict('x86_64', READ['x86_64'], architecture=0x40000003) == KILL
    assert verdict('x86_64', 0x40000000 + READ['x86_64']) == ERROR | errno.ENOSYS


def test_other_processors_have_no_filter() -> None:
    assert seccomp_filter('riscv64') is None
    assert seccomp_filter() == seccomp_filter(platform.machine())


HEADERS = [
    (0, '/usr/include/x86_64-linux-gnu/asm/unistd_64.h', ['__NR_']),
    (1, '/usr/include/asm-generic/unistd.h', ['__NR_', '__NR3264_']),
]


@pytest.mark.parametrize(('column', 'header', 'prefix'), [case for case in HEADERS if Path(case[1]).exists()])
def test_the_numbers_are_those_of_the_kernel_headers(column: int, header: str, prefix: list[str]) -> None:
    lines = [line.split() for line in Path(header).read_text().splitlines() if line.startswith('#define __NR')]
    known = {words[1]: words[2] for words in lines if len(words) >= 3}
    for name, numbers in DENIED.items():
        found = next((known[f'{start}{name}'] for start in prefix if f'{start}{name}' in known), None)
        assert found == (None if numbers[column] is None else str(numbers[column])), name


@pytest.mark.parametrize('machine', ['x86_64', 'aarch64'])
def test_memory_that_belongs_to_no_process_is_refused_where_nobody_counts_it(machine: str) -> None:
    column = list(ARCHITECTURES).index(machine)
    for numbers in SHARED_MEMORY.values():
        assert verdict(machine, numbers[column]) == ALLOW
        assert verdict(machine, numbers[column], shared_memory=False) == ERROR | errno.ENOSYS


@pytest.mark.parametrize(('machine', 'openat', 'fchmod'), [('x86_64', 257, 91), ('aarch64', 56, 52)])
def test_no_file_is_made_that_runs_as_its_owner(machine: str, openat: int, fchmod: int) -> None:
    for mode, answer in ((0o755, ALLOW), (0o1777, ALLOW), (0o4755, ERROR | errno.EPERM), (0o2755, ERROR | errno.EPERM)):
        assert verdict(machine, fchmod, 3, mode) == answer
        assert verdict(machine, openat, 3, 0, 0, mode) == answer
