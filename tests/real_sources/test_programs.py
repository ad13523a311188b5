import os
import shutil
from pathlib import Path

import pytest

from tests.real_sources.programs import NODE_EXPORTER, NoProgram, Program


def test_what_is_on_path_is_used(tmp_path: Path) -> None:
    program = tmp_path / "prometheus"
    program.write_text("#!/bin/sh\n", encoding="ascii")
    program.chmod(0o755)
    assert Program("prometheus", "prometheus").find({"PATH": str(tmp_path)}) == program


def test_without_apt_it_says_what_to_do(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    with pytest.raises(NoProgram, match="apt install prometheus-node-exporter"):
        NODE_EXPORTER.find(environ)


def test_a_package_that_apt_does_not_know_is_named(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    unknown = Program("no-such-program", "no-such-package-of-debian")
    with pytest.raises(NoProgram, match=r"apt-get download no-such.* failed .*reachable") as raised:
        unknown.find(environ)
    assert "\n" not in str(raised.value)


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="no apt-get")
def test_empty_lists_of_the_machine_are_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "lists" / "partial").mkdir(parents=True)
    config = tmp_path / "apt.conf"
    config.write_text(f'Dir::State::lists "{tmp_path / "lists"}";\n', encoding="utf-8")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "APT_CONFIG": str(config)}
    assert Program("hello", "hello").find(environ).exists()
