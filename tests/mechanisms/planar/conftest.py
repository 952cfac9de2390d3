"""The oracles and the texts that several of these tests share are modules beside this file."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
