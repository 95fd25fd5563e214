"""Files: whole objects in a folder, on a disk or on object storage.

Records need four things: an object that appears whole or not at all, one that only one
process can create, a listing, and a deletion. A disk has them by renaming and linking a
temporary file, object storage by a single put.
"""

import contextlib
import dataclasses
import os
import pathlib
import posixpath
import uuid

import fsspec

from bmg_sweeps import errors

_TEMPORARY = ".tmp-"


@dataclasses.dataclass(frozen=True)
class Storage:
    """A folder on a file system that fsspec knows."""

    uri: str
    fs: fsspec.AbstractFileSystem
    root: str

    @property
    def is_local(self) -> bool:
        """Whether files can be renamed and linked, rather than only put."""
        return "file" in self.fs.protocol

    def path(self, *parts: str) -> str:
        """Joins names below the root."""
        return posixpath.join(self.root, *parts)

    def read(self, *parts: str) -> bytes:
        """Returns the whole of an object."""
        return self.fs.cat_file(self.path(*parts))

    def replace(self, data: bytes, *parts: str) -> None:
        """Writes an object so that readers see the old or the new one, whole."""
        path = self.path(*parts)
        if not self.is_local:
            self.fs.pipe_file(path, data)
            return
        temporary = _write_temporary(path, data)
        os.replace(temporary, path)

    def create(self, data: bytes, *parts: str) -> None:
        """Writes an object that does not exist, whole.

        Raises:
            FileExistsError: it does.
        """
        path = self.path(*parts)
        if not self.is_local:
            self.fs.pipe_file(path, data, mode="create")
            return
        temporary = _write_temporary(path, data)
        try:
            os.link(temporary, path)
        finally:
            os.unlink(temporary)

    def sizes(self, *parts: str) -> dict[str, int]:
        """Lists the objects in a folder, with their sizes in bytes."""
        try:
            entries = self.fs.ls(self.path(*parts), detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        return {posixpath.basename(e["name"]): e["size"] or 0 for e in entries}

    def remove(self, *parts: str) -> None:
        """Deletes an object if it is there."""
        with contextlib.suppress(FileNotFoundError):
            self.fs.rm_file(self.path(*parts))


def open_storage(uri: str) -> Storage:
    """Opens a folder or an fsspec URI; it need not exist yet.

    Args:
        uri: a path, or such as "s3://bucket/runs".

    Returns:
        The storage, with an absolute root.

    Raises:
        UserError: there is no such kind of file system.
    """
    try:
        # Records change under the eyes of those who list them.
        fs, root = fsspec.core.url_to_fs(uri, use_listings_cache=False)
    except (ValueError, ImportError) as error:
        raise errors.UserError(f"--storage {uri}: {error}") from error
    return Storage(uri, fs, root)


def check_writable(storage: Storage) -> None:
    """Writes an object as records are written, and deletes it.

    Args:
        storage: that is about to be written.

    Raises:
        UserError: it cannot be.
    """
    probe = f".probe-{uuid.uuid4().hex}"
    try:
        storage.create(b"", probe)
        storage.remove(probe)
    except OSError as error:
        raise errors.UserError(
            f"--storage {storage.uri}: expected a folder that can be written "
            f"({error.strerror or error})"
        ) from error


def _write_temporary(path: str, data: bytes) -> str:
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    # A name that no reader of manifests, states or rows would take for one of them.
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
