"""What must be there after a power cut."""

import os
import tempfile
from pathlib import Path


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on disk before what depends on them is done.

    Raises
    ------
    OSError
        When the disk does not take it.
    """
    if path.is_dir() and os.name == "nt":
        return  # Windows has no descriptors of folders
    handle = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def put_once(place: Path, content: bytes) -> None:
    """Create a file at once, completely and on disk; whoever comes second keeps the first one's.

    Raises
    ------
    OSError
        When the disk does not take it.
    """
    handle, scratch = tempfile.mkstemp(dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        sync(Path(scratch))
        os.link(scratch, place)
    except FileExistsError:
        pass
    finally:
        Path(scratch).unlink()
    sync(place.parent)
