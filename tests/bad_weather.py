"""Clocks that jump and storages that refuse, for every process of a launch; for tests.

`install` writes a `sitecustomize` that Python imports in each process whose
`PYTHONPATH` names its folder. A test then changes the weather by two files, while the
launch runs.
"""

import os
import pathlib

_SITE = """
import builtins, errno, io, os, time

_FOLDER = {folder!r}
_STORAGE = {storage!r}
_time, _open, _link, _replace = time.time, builtins.open, os.link, os.replace
_FileIO, _scandir = io.FileIO, os.scandir


def _offset():
    try:
        with _open(_FOLDER + "/clock") as file:
            return float(file.read())
    except (OSError, ValueError):
        return 0.0


def _refuse(path):
    if isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(_STORAGE):
        if os.path.exists(_FOLDER + "/refuses"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), os.fspath(path))


def _refusing(function):
    def guarded(path, *arguments, **keywords):
        _refuse(path)
        return function(path, *arguments, **keywords)

    return guarded


time.time = lambda: _time() + _offset()
time.time_ns = lambda: int(time.time() * 1e9)
builtins.open, os.link, os.replace = map(_refusing, (_open, _link, _replace))
os.scandir = lambda path=".": (_refuse(path), _scandir(path))[1]


class _Refusing(_FileIO):
    def __init__(self, file, *arguments, **keywords):
        _refuse(file)
        super().__init__(file, *arguments, **keywords)


io.FileIO = _Refusing
"""


class Weather:
    """What the processes of a launch meet, from now on."""

    def __init__(self, folder: pathlib.Path, storage: pathlib.Path) -> None:
        self._folder = folder
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(
            _SITE.format(folder=str(folder), storage=f"{storage}/")
        )

    @property
    def environment(self) -> dict[str, str]:
        """What has a process meet it."""
        return {"PYTHONPATH": str(self._folder)}

    def move_clock(self, seconds: float) -> None:
        """Lets every clock show so many seconds more than the machine's."""
        new = self._folder / "new"
        new.write_text(str(seconds))
        os.replace(new, self._folder / "clock")

    def refuse(self) -> None:
        """Lets the storage answer each read and write with an I/O error."""
        (self._folder / "refuses").touch()

    def allow(self) -> None:
        """Lets the storage answer again."""
        (self._folder / "refuses").unlink(missing_ok=True)
