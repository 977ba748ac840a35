"""Names the systems that a wheel is for."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        architecture = os.environ["TOUCHMARK_ARCHITECTURE"]
        # The program is linked statically: it needs neither glibc nor musl.
        systems = ("manylinux2014", "manylinux_2_17", "musllinux_1_1")
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + ".".join(f"{system}_{architecture}" for system in systems)
