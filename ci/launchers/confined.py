#!/usr/bin/env python3
"""Runs a program that may not look into other processes' memory, as in many containers: a system call filter refuses
process_vm_readv and its like with EPERM, to the program and all that it starts.

    confined.py PROGRAM ARGUMENT...
"""
import ctypes
import errno
import os
import platform
import struct
import sys

# process_vm_readv, process_vm_writev, ptrace, kcmp, pidfd_getfd
CALLS = {"x86_64": [310, 311, 101, 312, 438], "aarch64": [270, 271, 117, 272, 438]}[platform.machine()]
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


def step(code, value, if_true=0, if_false=0):
    return struct.pack("=HBBI", code, if_true, if_false, value)


# The number of the call is the first word of what a filter sees; it jumps to the last step if it is one of ours.
steps = [step(LOAD, 0)]
steps += [step(EQUAL, call, len(CALLS) - at) for at, call in enumerate(CALLS)]
steps += [step(RETURN, ALLOW), step(RETURN, REFUSE)]
code = ctypes.create_string_buffer(b"".join(steps))
program = struct.pack("@HP", len(steps), ctypes.addressof(code))

libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
    sys.exit(f"confined.py: no filter: {os.strerror(ctypes.get_errno())}")
if libc.syscall(CALLS[0], os.getpid(), None, 0, None, 0, 0) != -1 or ctypes.get_errno() != errno.EPERM:
    sys.exit("confined.py: the filter lets process_vm_readv pass")
os.execvp(sys.argv[1], sys.argv[1:])
