"""locked_down.py ROOT MODELS UID:GID [NAME=VALUE...] -- COMMAND...: runs a command as a container's runtime would that locks it
down: ROOT is its root and read-only, so is the folder MODELS at /models; it has no capability and cannot gain any.

Started with mounts of its own (unshare --mount). The process becomes the command.
"""

import ctypes
import os
import sys

MS_RDONLY, MS_NOSUID, MS_REMOUNT, MS_BIND = 1, 2, 32, 4096
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
LIBC = ctypes.CDLL(None, use_errno=True)


def must(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def mount(source, target, kind, flags):
    must(LIBC.mount(source.encode(), target.encode(), kind.encode() if kind else None, flags, None), target)


def mount_read_only(source, target):
    mount(source, target, None, MS_BIND)
    mount("none", target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID)


def give_up_capabilities(user, group):
    with open("/proc/sys/kernel/cap_last_cap") as last:
        capabilities = range(int(last.read()) + 1)
    for capability in capabilities:
        must(LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), "bounding set")
    must(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)


def main():
    split = sys.argv.index("--")
    root, models, owner, *variables = sys.argv[1:split]
    command = sys.argv[split + 1 :]
    user, group = map(int, owner.split(":"))
    # A runtime makes these two where the image has none.
    os.makedirs(f"{root}/proc", exist_ok=True)
    mount_read_only(root, root)
    mount("proc", f"{root}/proc", "proc", 0)
    mount_read_only(models, f"{root}/models")
    os.chroot(root)
    os.chdir("/")
    give_up_capabilities(user, group)
    os.execve(command[0], command, dict(variable.split("=", 1) for variable in variables))


if __name__ == "__main__":
    main()
