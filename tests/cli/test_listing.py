"""``hardthresh list``."""

from typing import get_args

from hardthresh.cli.listing import KINDS
from hardthresh.core.registry import Kind, registered


def test_everything_registered_is_listed(done):
    text = done("list")
    for kind in KINDS:
        for name, entry in registered(kind).items():
            assert name in text
            assert entry.cls.__name__ in text


def test_every_kind_but_objectives_is_listed():
    assert {*get_args(Kind)} - {*KINDS} == {"objective"}
