"""python -m kimi_demo …"""

import sys

from kimi_demo.cli import main

if __name__ == "__main__":
    sys.exit(main())
