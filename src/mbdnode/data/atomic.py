"""Files that are replaced whole or not at all.

The content goes to a temporary file in the destination's own directory, which then takes the
destination's name in one step of the file system. A reader, or a crash, sees the old file or the
new one and never a part.
"""

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any


def replace_file(destination: Path, fill: Callable[[IO[bytes]], Any]) -> None:
    """Write a file, or leave what was there.

    **Arguments:**

    - `destination`: where; an existing file keeps its permissions.
    - `fill`: writes the content to the binary file that it is given.
    """
    destination = destination.resolve()
    temporary = destination.with_name(f".{destination.name}.{secrets.token_hex(4)}.part")
    try:
        try:
            with open(temporary, "xb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            if destination.exists():
                shutil.copymode(destination, temporary)
            os.replace(temporary, destination)
        finally:
            # Also on an interrupt from the keyboard. After the rename there is nothing to remove.
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(
            f"Writing '{destination}' failed: {error.strerror or error}. Nothing was changed; "
            "check the disk's free space and the directory's permissions, or choose another place."
        ) from error
