"""A limit on the memory of programs, the page cache of what they read and write included."""
import pathlib
import shutil
import sys


class MemoryGroup:
    """A child of this process's own memory cgroup; what it starts is charged for its page cache too."""

    def __init__(self, limit):
        self.limit = limit
        mounts = [line.split() for line in open("/proc/self/mountinfo")]
        mine = [line.strip().split(":", 2) for line in open("/proc/self/cgroup")]
        self.folder, self.version = None, 0
        for fields in mounts:
            kind, options = fields[fields.index("-") + 1], fields[fields.index("-") + 3].split(",")
            for _, controllers, group in mine:
                version = 2 if kind == "cgroup2" and not controllers else 1 if kind == "cgroup" and "memory" in controllers.split(",") and "memory" in options else 0
                folder = pathlib.Path(fields[4] + group)
                if version and (folder / ("memory.max" if version == 2 else "memory.limit_in_bytes")).exists() and self.version != 1:
                    self.folder, self.version = folder / "llmc-bench", version

    def __enter__(self):
        try:
            self.folder.mkdir(exist_ok=True)
            (self.folder / ("memory.max" if self.version == 2 else "memory.limit_in_bytes")).write_text(str(self.limit))
        except (OSError, TypeError, AttributeError):
            if not shutil.which("systemd-run"):
                sys.exit("error: no memory cgroup can be made here, and there is no systemd-run")
            self.folder = None
        return self

    def __exit__(self, *_):
        if self.folder:
            self.folder.rmdir()

    def prefix(self):
        if not self.folder:
            return ["systemd-run", "--scope", "--quiet", f"--property=MemoryMax={self.limit}"]
        return ["sh", "-c", f'echo $$ >"{self.folder}/cgroup.procs" && exec "$@"', "sh"]

    def peak(self):
        name = "memory.peak" if self.version == 2 else "memory.max_usage_in_bytes"
        return int((self.folder / name).read_text()) if self.folder and (self.folder / name).exists() else None
