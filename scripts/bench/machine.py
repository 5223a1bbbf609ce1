"""The machine that the figures are from, and how busy it was with other things."""

import platform
from dataclasses import dataclass
from importlib.metadata import version

import psutil


@dataclass(frozen=True)
class Machine:
    """cpus: that this process may use; busy: share of them that everything on the machine took in the second before the start."""

    system: str
    processor: str
    cpus: int
    memory_gb: float
    gpus: list[str]
    python: str
    browser: str
    packages: dict[str, str]
    busy: float
    load_1m: float

    @classmethod
    def here(cls, browser: str) -> "Machine":
        from kimi_demo.engines.accelerators import gpus

        return cls(
            system=platform.platform(),
            processor=_processor(),
            cpus=len(psutil.Process().cpu_affinity()) if hasattr(psutil.Process, "cpu_affinity") else psutil.cpu_count() or 1,
            memory_gb=round(psutil.virtual_memory().total / 1e9, 1),
            gpus=[str(each) for each in gpus()],
            python=platform.python_version(),
            browser=browser,
            packages={name: version(name) for name in ("gradio", "openai", "uvicorn", "fastapi")},
            busy=psutil.cpu_percent(1.0) / 100,
            load_1m=psutil.getloadavg()[0],
        )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    except OSError:
        return platform.processor() or platform.machine()
