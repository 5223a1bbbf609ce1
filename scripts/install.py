"""Install the demo into .venv: `python3 scripts/install.py [--tests]`, with the standard library only. See also `make help`."""

import os
import sys

if sys.version_info < (3, 8):  # this file alone must be readable for older ones
    sys.exit("Python 3.11, 3.12 or 3.13 is needed; this is %s. Name one: make install PYTHON=/path/to/python3.12" % sys.version.split()[0])

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from scripts.installer.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
