"""Builds a seccomp filter that refuses system calls which scripts do not need but attacks on the kernel use.

The filter is a small program that the kernel runs on every system call. Namespaces already keep a script away from
files, processes and the network; the filter blocks the parts of the kernel that exploits use most often to break out of
namespaces, and the ways to make new ones. It also blocks programs that run as their owner, which would outlive a run.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

DENIED: dict[str, tuple[int | None, int | None]] = {
    'acct': (163, 89),
    'add_key': (248, 217),
    'adjtimex': (159, 171),
    'bpf': (321, 280),
    'chroot': (161, 51),
    'clock_adjtime': (305, 266),
    'clock_settime': (227, 112),
    'delete_module': (176, 106),
    'fanotify_init': (300, 262),
    'finit_module': (313, 273),
    'fsconfig': (431, 431),
    'fsmount': (432, 432),
    'fsopen': (430, 430),
    'fspick': (433, 433),
    'init_module': (175, 105),
    'io_uring_enter': (426, 426),
    'io_uring_register': (427, 427),
    'io_uring_setup': (425, 425),
    'ioperm': (173, None),
    'iopl': (172, None),
    'kcmp': (312, 272),
    'kexec_file_load': (320, 294),
    'kexec_load': (246, 104),
    'keyctl': (250, 219),
    'lookup_dcookie': (212, 18),
    'modify_ldt': (154, None),
    'mount': (165, 40),
    'mount_setattr': (442, 442),
    'move_mount': (429, 429),
    'open_by_handle_at': (304, 265),
    'open_tree': (428, 428),
    'perf_event_open': (298, 241),
    'pivot_root': (155, 41),
    'process_vm_readv': (310, 270),
    'process_vm_writev': (311, 271),
    'ptrace': (101, 117),
    'quotactl': (179, 60),
    'quotactl_fd': (443, 443),
    'reboot': (169, 142),
    'request_key': (249, 218),
    'setns': (308, 268),
    'settimeofday': (164, 170),
    'swapoff': (168, 225),
    'swapon': (167, 224),
    'syslog': (103, 116),
    'umount2': (166, 39),
    'unshare': (272, 97),
    'uselib': (134, None),
    'userfaultfd': (323, 282),
    'vhangup': (153, 58),
}
"""Calls that fail with "operation not permitted", with their numbers on x86_64 and aarch64."""

SHARED_MEMORY: dict[str, tuple[int, int]] = {
    'memfd_create': (319, 279),
    'memfd_secret': (447, 447),
    'msgget': (68, 186),
    'semget': (64, 190),
    'shmget': (29, 194),
}
"""Calls for memory that belongs to no process. They fail as if the kernel did not have them."""

_MODES: dict[str, tuple[int | None, int | None, int]] = {
    'chmod': (90, None, 1),
    'creat': (85, None, 1),
    'fchmod': (91, 52, 1),
    'fchmodat': (268, 53, 2),
    'fchmodat2': (452, 452, 2),
    'mknod': (133, None, 1),
    'mknodat': (259, 33, 2),
    'open': (2, None, 2),
    'openat': (257, 56, 3),
}
"""Calls that give a file its mode, and which of their arguments it is."""

_RUN_AS_OWNER = 0o6000
"""The bits of a mode with which a program runs as its owner or group, whoever starts it."""

_SOCKETS = (1, 2, 10, 16)
"""Socket families a script may open: local, IPv4, IPv6, and netlink for looking up names. Some others, such as the one
between a virtual machine and its host, ignore the network namespace."""

_NEW_NAMESPACE = 0x7E020000
"""The flags of `clone` that make a namespace: mount, cgroup, uts, ipc, user, pid, network."""

_TERMINAL_INPUT = 0x5412
"""The request of `ioctl` that types into a terminal."""

# Instructions of the machine: load a word, compare, test bits, return.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
# Where the kernel puts what the filter looks at: number, architecture, low half of the first and second argument.
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
_ARGUMENT_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class _Machine:
    """What differs between processors."""

    column: int
    architecture: int
    clone: int
    clone3: int = 435
    openat2: int = 437
    ioctl: int
    socket: int


_MACHINES = {
    'x86_64': _Machine(column=0, architecture=0xC000003E, clone=56, ioctl=16, socket=41),
    'aarch64': _Machine(column=1, architecture=0xC00000B7, clone=220, ioctl=29, socket=198),
}


def seccomp_filter(machine: str | None = None, *, shared_memory: bool = True) -> bytes | None:
    """The filter as the kernel expects it, or `None` for a processor whose system calls are not known here.

    Args:
        machine: The processor, by default that of this machine.
        shared_memory: Whether to allow memory that belongs to no process.
    """
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    program = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, known.architecture, true=1),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
        # Higher numbers are another set of the same calls (x32), to which this list does not apply.
        _instruction(_AT_LEAST, 0x40000000, false=1),
        _fail(errno.ENOSYS),
        # Their flags are in memory, which a filter cannot read. C libraries fall back to `clone` and `openat`.
        _instruction(_EQUAL, known.clone3, false=1),
        _fail(errno.ENOSYS),
        _instruction(_EQUAL, known.openat2, false=1),
        _fail(errno.ENOSYS),
    ]
    for numbers in () if shared_memory else SHARED_MEMORY.values():
        program += [_instruction(_EQUAL, numbers[known.column], false=1), _fail(errno.ENOSYS)]
    for numbers in DENIED.values():
        if (number := numbers[known.column]) is not None:
            program += [_instruction(_EQUAL, number, false=1), _fail(errno.EPERM)]
    for *calls, argument in _MODES.values():
        if (number := calls[known.column]) is not None:
            steps = [_instruction(_ANY_BIT, _RUN_AS_OWNER, false=1), _fail(errno.EPERM)]
            program += _inside(number, _FIRST + argument * _ARGUMENT_BYTES, steps)
    program += _inside(known.clone, _FIRST, [_instruction(_ANY_BIT, _NEW_NAMESPACE, false=1), _fail(errno.EPERM)])
    program += _inside(known.ioctl, _SECOND, [_instruction(_EQUAL, _TERMINAL_INPUT, false=1), _fail(errno.EPERM)])
    allowed = [step for family in _SOCKETS for step in (_instruction(_EQUAL, family, false=1), _allow())]
    program += _inside(known.socket, _FIRST, [*allowed, _fail(errno.EAFNOSUPPORT)])
    return b''.join([*program, _allow()])


def _instruction(code: int, value: int, *, true: int = 0, false: int = 0) -> bytes:
    """One instruction; `true` and `false` are how many of the next ones to skip."""
    return struct.pack('=HBBI', code, true, false, value)


def _allow() -> bytes:
    return _instruction(_RETURN, _ALLOW)


def _fail(error: int) -> bytes:
    return _instruction(_RETURN, _ERROR | error)


def _inside(number: int, argument: int, steps: list[bytes]) -> list[bytes]:
    """Steps for one system call, on one of its arguments. Afterwards the number is loaded again."""
    body = [_instruction(_LOAD, argument), *steps, _instruction(_LOAD, _NUMBER)]
    return [_instruction(_EQUAL, number, false=len(body)), *body]
