"""A file is written whole or not at all, whatever happens on the way, and whoever else writes it."""

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from hardthresh.core.files import write_file

on_posix = pytest.mark.skipif(os.name != "posix", reason="permissions, pipes and devices are those of POSIX")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


def test_a_file_is_written_and_replaced(path):
    for content in (b"one", b"", b"\r\n\x00three"):
        write_file(path, content)
        assert path.read_bytes() == content
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")], ids=["killed", "full"])
def test_an_interruption_leaves_the_old_file_and_no_draft(path, monkeypatch, step, error):
    def fail(*args):
        raise error

    write_file(path, b"old")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [*path.parent.iterdir()] == [path]


@on_posix
@pytest.mark.parametrize("old", [None, b"old"], ids=["new", "replaced"])
def test_the_name_is_on_disk_too(path, monkeypatch, old):
    """Without a flush of the folder after the rename, a power failure can bring the old file back."""
    steps, fsync, replace = [], os.fsync, os.replace

    def flush(descriptor):
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "content")
        fsync(descriptor)

    def rename(*args):
        steps.append("rename")
        replace(*args)

    if old is not None:
        path.write_bytes(old)
    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "replace", rename)
    write_file(path, b"new")
    assert steps == ["content", "rename", "folder"]


@on_posix
@pytest.mark.parametrize("step", ["open", "fsync"])
def test_a_folder_that_cannot_be_flushed_is_no_error(path, monkeypatch, step):
    """The file is there: some file systems refuse to flush a folder, and a folder may be writable but not readable."""
    call = getattr(os, step)

    def refuse(what, *args, **kwargs):
        if os.path.isdir(what):
            raise OSError(22, "Invalid argument")
        return call(what, *args, **kwargs)

    monkeypatch.setattr(os, step, refuse)
    write_file(path, b"content")
    assert path.read_bytes() == b"content"


@pytest.mark.parametrize("name", ["no/folder", "folder", "file"])
def test_errors_name_the_file(tmp_path, name, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")  # as write() raises it, without a name

    (tmp_path / "folder").mkdir()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=name) as caught:
        write_file(tmp_path / name, b"content")
    assert caught.value.filename == str(tmp_path / name)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_device_is_written_to_as_it_is(tmp_path):
    (tmp_path / "link").symlink_to("/dev/full")
    for path in (Path("/dev/full"), tmp_path / "link"):
        with pytest.raises(OSError, match="No space left on device") as caught:
            write_file(path, b"content")
        assert caught.value.filename == str(path)
    write_file("/dev/null", b"content")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@on_posix
def test_a_pipe_is_written_to_as_it_is(path):
    os.mkfifo(path)
    received = []
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()))
    reader.start()
    write_file(path, b"content")
    reader.join()
    assert received == [b"content"]
    assert stat.S_ISFIFO(path.stat().st_mode)


@on_posix
def test_permissions_are_kept_and_new_files_follow_the_umask(path):
    before = os.umask(0o027)
    try:
        write_file(path, b"old")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write_file(path, b"new")
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(before)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write to every file")
def test_a_write_protected_file_is_refused(path):
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(PermissionError) as caught:
        write_file(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"


@on_posix
def test_links_are_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/file")
    for content in (b"made", b"replaced"):
        write_file(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "folder/file").read_bytes() == content
    assert {file.name for file in tmp_path.rglob("*")} == {"folder", "link", "file"}


def test_drafts_of_killed_processes_go_after_a_day(path):
    young, old, foreign = (path.with_name(name) for name in (".hardthresh-1.draft", ".hardthresh-2.draft", ".x.draft"))
    for draft in (young, old, foreign):
        draft.write_bytes(b"cut")
    for draft in (old, foreign):
        os.utime(draft, (time.time() - 90_000,) * 2)
    write_file(path, b"content")
    assert {*path.parent.iterdir()} == {path, young, foreign}


def test_many_writers_of_one_name(path):
    failures = []

    def write(number):
        try:
            for _ in range(20):
                write_file(path, bytes([number]) * 5000)
        except OSError as error:
            failures.append(error)

    write(0)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        content = path.read_bytes()
        assert content == content[:1] * 5000
    for writer in writers:
        writer.join()
    assert failures == []
    assert [*path.parent.iterdir()] == [path]
