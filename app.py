"""python app.py … is python -m kimi_demo …, which starts the page unless another command is named."""

import sys

from kimi_demo.cli import main

if __name__ == "__main__":  # vLLM starts processes that import this file again
    sys.exit(main(prog="python app.py"))
