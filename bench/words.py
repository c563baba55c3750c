# SPDX-License-Identifier: GPL-2.0
"""What people read instead of the names that the options and lab.json have."""

from models import MODELS, MODES
from workloads import WORKLOADS

INSTRUMENTS = {"virtual": "virtual time", "smp": "real time, 2 CPUs"}
DEVICES = {
    "nvme": "a drive like an NVMe one",
    "slow": "a slow drive",
    "fast": "a fast drive",
    "deep": "a drive with a deep queue",
    "shallow": "a drive that takes one request at a time",
}
ENGINES = {"c": "with the option off (C)", "rust": "with CONFIG_DONTCACHE_RUST"}
# What to try next: a command of the repository's, and what it does.
NEXT = (
    ("make bench INSTRUMENT=virtual", "upstream's C beside each policy"),
    ("make test TESTS='check um'", "the tests, on a kernel like this"),
    ("make install KDIR=~/linux", "into a Linux 7.3 tree of yours"),
)
# The same on the two kernels: which one is only said where both were run.
NAMESAKES = {"rbuffered": "buffered", "rdirect": "direct"}


def place(run):
    """What a run is of."""
    text = f"{DEVICES[run['model']]}, {INSTRUMENTS[run['instrument']]}"
    return text[0].upper() + text[1:]


def device(run):
    """The device of a run, and its limits."""
    return f"{DEVICES[run['model']]}: {MODELS[run['model']]}"


def modes_in(cells):
    """The modes that were run, in the order of the tables."""
    return [mode for mode in MODES if any(cell["mode"] == mode for cell in cells)]


def mode_title(mode, among):
    """A mode, AMONG others."""
    other = NAMESAKES.get(mode)
    return MODES[mode if other is None or other in among else other].title


def workload_title(workload):
    """A workload, as the head of something."""
    title = WORKLOADS[workload].title
    return title[0].upper() + title[1:]
