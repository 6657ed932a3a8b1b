# syntax=docker/dockerfile:1
# Two images from one file: `web` for pages, house-keeping and the reference engine's worker, and
# `gpu-worker`, which lays specdebug beside an SGLang image's own Python. See docs/operations.md.
ARG PYTHON_IMAGE=python:3.12-slim-bookworm
ARG SGLANG_IMAGE=lmsysorg/sglang:latest

# ---- packages: built apart, so that no compiler and no cache gets into the image -----------------
FROM ${PYTHON_IMAGE} AS packages
# An index of CPU builds of torch; empty: no reference engine in this image.
ARG TORCH_INDEX=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
RUN python -m venv /opt/venv
COPY requirements.lock ./
RUN /opt/venv/bin/pip install --require-hashes -r requirements.lock
RUN if [ -n "${TORCH_INDEX}" ]; then \
      /opt/venv/bin/pip install --no-deps --index-url "${TORCH_INDEX}" torch==2.13.0; \
    fi
COPY . .
RUN /opt/venv/bin/pip install --no-deps --no-build-isolation -e . \
    && SPECDEBUG_DATA=/tmp/build /opt/venv/bin/python -m experiments.reports.vendor

# ---- web, house and the worker of the reference engine -------------------------------------------
FROM ${PYTHON_IMAGE} AS web
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
       libpango-1.0-0 libpangoft2-1.0-0 fonts-dejavu-core \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home specdebug \
    && install -d -o specdebug -g specdebug -m 700 /data
COPY --from=packages /opt/venv /opt/venv
COPY --from=packages /app /app
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 SPECDEBUG_DATA=/data
WORKDIR /app
USER specdebug
VOLUME /data
EXPOSE 8000
CMD ["gunicorn", "specdebug.wsgi", "--bind", "0.0.0.0:8000", "--worker-class", "gthread", "--workers", "2", "--threads", "4"]

# ---- the worker on a GPU host --------------------------------------------------------------------
FROM ${SGLANG_IMAGE} AS gpu-worker
USER root
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
COPY requirements.lock ./
# An environment of our own: SGLang's is left as it is, and found again by its Python's path.
RUN python3 -m venv /opt/venv \
    && /opt/venv/bin/pip install --require-hashes -r requirements.lock \
    && printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v python3)" > /opt/sglang-python \
    && chmod 755 /opt/sglang-python \
    && useradd --uid 10001 --create-home specdebug \
    && install -d -o specdebug -g specdebug -m 700 /data
COPY . .
RUN /opt/venv/bin/pip install --no-deps --no-build-isolation -e .
ENV SPECDEBUG_SGLANG_PYTHON=/opt/sglang-python SPECDEBUG_DATA=/data PYTHONUNBUFFERED=1
USER specdebug
VOLUME /data
ENTRYPOINT []
CMD ["/opt/venv/bin/celery", "-A", "specdebug", "worker", "-Q", "measure", "--concurrency", "1"]
