"""The wheel's tag: any Python 3, on machines that have what libtopdown.so needs."""

import re
import subprocess

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    from wheel.bdist_wheel import bdist_wheel

LIBRARY = "topdown/libtopdown.so"
MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}
# PEP 600 lets a manylinux wheel need these
ALLOWED = re.compile(r"lib(c|m|dl|rt|pthread)\.so|libgcc_s\.so\.1|ld-linux")


def platform():
    said = subprocess.run(["readelf", "-W", "-h", "-d", "-V", LIBRARY], check=True, stdout=subprocess.PIPE).stdout.decode()
    machine = MACHINES[re.search(r"Machine: +(.+)", said)[1]]
    foreign = [name for name in re.findall(r"\(NEEDED\).*\[(.+)\]", said) if not ALLOWED.match(name)]
    if foreign:
        return f"linux_{machine}"
    glibc = [(int(major), int(minor)) for major, minor in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", said)]
    if "GLIBC_ABI_DT_RELR" in said:  # packed relocations
        glibc.append((2, 36))
    return "manylinux_{}_{}_{}".format(*max(glibc), machine)


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", platform()


setup(distclass=Binary, cmdclass={"bdist_wheel": Wheel})
