"""Files: whole objects in a folder, on a disk or on object storage.

Records need four operations: to write an object that appears whole or not at all, to
create one where only one process can succeed, to list, and to delete. On a disk, the
first two rename and link a temporary file; on object storage they are a single put.
"""

import contextlib
import dataclasses
import errno
import io
import os
import pathlib
import posixpath
import re
import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bmg_sweeps import errors

if TYPE_CHECKING:  # --help shall not wait for it.
    import fsspec

_TEMPORARY = ".tmp-"
_TEMPORARIES = _TEMPORARY + "[0-9a-f]" * 32  # And none of somebody else's.
_LEFT_SECONDS = 180.0  # A killed process left a temporary file that is so old.
# Without these, a host that does not answer is asked for minutes.
_S3_OPTIONS = {
    "config_kwargs": {
        "connect_timeout": 3,
        "read_timeout": 10,
        "retries": {"total_max_attempts": 1},
    }
}
_PUT_SECONDS = 15.0  # A put is given up after so long, and more for a large object:
_MIN_BYTES_PER_SECOND = 1e6
_MAX_S3_TRIES = 3  # A request that fails to connect or is throttled is sent so often.


class StorageError(errors.UserError, OSError):
    """The storage refuses or does not answer; the user can mend it, or try again."""


@dataclasses.dataclass(frozen=True)
class Storage:
    """A folder on a file system that fsspec knows."""

    uri: str
    fs: "fsspec.AbstractFileSystem"
    root: str

    @property
    def is_local(self) -> bool:
        """Whether files can be renamed and linked."""
        return "file" in self.fs.protocol

    def path(self, *parts: str) -> str:
        """Joins names below the root; raises ValueError for one that would escape."""
        for part in parts:
            if part in ("", ".", "..") or "/" in part or "\0" in part:
                raise ValueError(f"{part!r} is no name in a storage")
        return posixpath.join(self.root, *parts)

    def read(self, *parts: str) -> bytes:
        """Returns the whole of an object.

        Raises:
            FileNotFoundError: it does not exist.
        """
        with self._refusals(FileNotFoundError):
            if self.is_local:
                with io.FileIO(self.path(*parts)) as file:
                    return file.readall()
            return self.fs.cat_file(self.path(*parts))

    def replace(self, data: bytes, *parts: str) -> None:
        """Writes an object so that readers see the old or the new one, whole."""
        path = self.path(*parts)
        with self._refusals():
            if self.is_local:
                os.replace(self._temporary(path, data), path)
            else:
                self._put(data, path)

    def create(self, data: bytes, *parts: str) -> None:
        """Writes an object that does not exist yet; it appears whole.

        Raises:
            FileExistsError: it exists, with other content.
        """
        path = self.path(*parts)
        try:
            if self.is_local:
                self._link(data, path)
            else:
                with self._refusals(FileExistsError):
                    self._put(data, path, mode="create")
        except FileExistsError:
            # A repeated request, whose first answer was lost, finds its own object.
            if self.read(*parts) != data:
                raise

    def _put(self, data: bytes, path: str, **mode: str) -> None:
        if not self.fs.async_impl:
            self.fs.pipe_file(path, data, **mode)
            return
        import fsspec.asyn

        # Without a limit, a put waits forever for a host that accepts and says nothing.
        seconds = _PUT_SECONDS + len(data) / _MIN_BYTES_PER_SECOND
        put = self.fs._pipe_file
        fsspec.asyn.sync(self.fs.loop, put, path, data, timeout=seconds, **mode)

    def _link(self, data: bytes, path: str) -> None:
        with self._refusals():
            temporary = self._temporary(path, data)
        try:
            with self._refusals(FileExistsError):
                _link(temporary, path)
        finally:
            with self._refusals():
                os.unlink(temporary)

    def _temporary(self, path: str, data: bytes) -> str:
        root, folder = map(os.path.realpath, (self.root, posixpath.dirname(path)))
        if os.path.commonpath([root, folder]) != root:
            raise OSError(f"{path} is a link that leads out of it")
        return _write_temporary(path, data)

    def exists(self, *parts: str) -> bool:
        """Whether there is an object of this name."""
        with self._refusals():
            return self.fs.exists(self.path(*parts))

    def sizes(self, *parts: str) -> dict[str, int]:
        """Lists the objects in a folder, with their sizes in bytes."""
        path = self.path(*parts)
        with self._refusals():
            if self.is_local:
                return _local_sizes(path)
            # `ls` would list the parent, too, where there is no such folder.
            found = self.fs.find(path, detail=True)
        prefix = path.rstrip("/") + "/"
        names = {name.removeprefix(prefix): found[name]["size"] for name in found}
        return {name: size or 0 for name, size in names.items() if "/" not in name}

    def folders(self, *parts: str) -> set[str]:
        """Lists the folders in a folder, by name."""
        path = self.path(*parts)
        with self._refusals():
            try:
                if self.is_local:
                    with os.scandir(path) as entries:
                        return {entry.name for entry in entries if entry.is_dir()}
                found = self.fs.ls(path, detail=True)
            except (FileNotFoundError, NotADirectoryError) as error:
                if error.__cause__:
                    raise  # The bucket is missing, and not only the folder.
                return set()
        return {
            posixpath.basename(entry["name"].rstrip("/"))
            for entry in found
            if entry["type"] == "directory"
        }

    def remove(self, *parts: str) -> None:
        """Deletes an object if it is there."""
        with self._refusals(), contextlib.suppress(FileNotFoundError):
            if self.is_local:
                os.unlink(self.path(*parts))
            else:
                self.fs.rm_file(self.path(*parts))

    def remove_temporaries(self, *parts: str) -> None:
        """Deletes the half-written objects that killed processes left in a folder."""
        if not self.is_local:
            return
        with self._refusals():
            for path in pathlib.Path(self.path(*parts)).glob(_TEMPORARIES):
                with contextlib.suppress(FileNotFoundError):
                    if time.time() - path.stat().st_mtime > _LEFT_SECONDS:
                        path.unlink()

    @contextlib.contextmanager
    def _refusals(self, *answers: type[Exception]) -> Iterator[None]:
        """Turns what storages raise into one kind of error, but for some answers."""
        try:
            yield
        except (*answers, StorageError):
            raise
        except Exception as error:  # Object storages raise more than OSErrors.
            reason = getattr(error, "strerror", None) or errors.first_line(error)
            raise StorageError(
                f"--storage {self.uri}: expected a folder that can be written and read "
                f"({reason})"
            ) from error


def open_storage(uri: str) -> Storage:
    """Opens a folder or an fsspec URI; it need not exist yet.

    Args:
        uri: a path, or an address such as "s3://bucket/runs".

    Returns:
        The storage, with an absolute root.

    Raises:
        UserError: the URI is empty, names an unknown kind of file system, or holds a
            password.
    """
    is_s3 = uri.startswith(("s3://", "s3a://"))
    if not uri.strip():
        raise errors.UserError(f"--storage {uri!r}: expected a folder or an fsspec URI")
    if re.search("://[^@]*:[^@]*@", uri):  # The URI is printed, and sent to workers.
        raise errors.UserError(
            f"--storage {re.sub('://.*@', '://…@', uri)}: expected no credentials; the "
            f"environment or the protocol's own settings hold them"
        )
    import fsspec.core

    try:
        # A listing must be new each time: other processes change the records.
        fs, root = fsspec.core.url_to_fs(
            uri, use_listings_cache=False, **(_S3_OPTIONS if is_s3 else {})
        )
    except Exception as error:  # Each kind of file system raises its own.
        reason = errors.first_line(error)
        raise errors.UserError(
            f"--storage {uri}: expected a folder or an fsspec URI ({reason})"
        ) from error
    if is_s3:
        fs.retries = _MAX_S3_TRIES
    return Storage(uri, fs, root)


def check_writable(storage: Storage) -> None:
    """Writes an object as records are written, and deletes it.

    Records rest on two things, which are tried and not believed: an object that exists
    is not created again, and one that is replaced is read as it was written last. An
    object storage that ignores `If-None-Match`, for one, lets two processes have the
    same point.

    Raises:
        StorageError: the storage cannot be written, or does not keep to these.
    """
    probe = f".probe-{uuid.uuid4().hex}"
    storage.create(b"first", probe)
    try:
        with contextlib.suppress(FileExistsError):
            storage.create(b"second", probe)
            raise StorageError(
                f"--storage {storage.uri}: expected a storage in which only one process"
                f" can create an object; here a second one replaced the first one's"
            )
        if (found := storage.read(probe)) != b"first":
            raise _unfaithful(storage, b"first", found)
        storage.replace(b"third", probe)
        if (found := storage.read(probe)) != b"third":
            raise _unfaithful(storage, b"third", found)
    finally:
        storage.remove(probe)


def clear(storage: Storage) -> None:
    """Deletes what killed processes left half-written beside the points.

    What lies among a point's own objects goes when it is trained next.
    """
    storage.remove_temporaries()
    for folder in storage.folders():
        storage.remove_temporaries(folder)


def _unfaithful(storage: Storage, written: bytes, found: bytes) -> StorageError:
    return StorageError(
        f"--storage {storage.uri}: expected to read what was written last, "
        f"{written.decode()!r}; got {found[:20]!r}"
    )


def _link(temporary: str, path: str) -> None:
    """Gives a file its name, unless that is taken."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
        reason = f"{error.strerror}: it has no hard links, which records need"
        raise OSError(error.errno, reason) from error


def _local_sizes(path: str) -> dict[str, int]:
    sizes = {}
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                # A link was not written by a record, and may lead anywhere.
                if not entry.is_file(follow_symlinks=False):
                    continue
                try:
                    sizes[entry.name] = entry.stat(follow_symlinks=False).st_size
                except FileNotFoundError:
                    continue  # It was deleted meanwhile.
    except (FileNotFoundError, NotADirectoryError):
        pass
    return sizes


def _write_temporary(path: str, data: bytes) -> str:
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    # Readers of records do not take this name for that of an object.
    temporary = f"{posixpath.dirname(path)}/{_TEMPORARY}{uuid.uuid4().hex}"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return temporary
