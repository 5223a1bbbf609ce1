"""The config.json of a model on a hub, without its weights."""

from pathlib import Path
from typing import Literal

from kimi_demo.dialect.failure import Failure

Source = Literal["huggingface", "modelscope"]


def fetch_config(source: Source, name: str) -> Path:
    """A folder with the config.json of `name` ("owner/name"). Raises Failure("plan.config_unreachable", model=…, source=…, problem=…)."""
    try:
        if source == "modelscope":
            from modelscope.hub.file_download import model_file_download

            return Path(model_file_download(name, "config.json")).parent
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(name, "config.json")).parent
    except Exception as error:  # the clients raise many kinds, and all of them mean: there is nothing to plan with
        problem = str(error).strip().splitlines()
        said = problem[0][:200] if problem else type(error).__name__
        raise Failure("plan.config_unreachable", model=name, source=source, problem=said) from error
