# An image with the program: docker build -t abstain . && docker run --rm -v "$PWD:/data" abstain evaluate p.csv
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt hatch_build.py ./
COPY src src
RUN python -m venv /opt/abstain \
    && /opt/abstain/bin/pip install --no-cache-dir -c constraints.txt '.[fast]'

FROM python:3.11-slim
COPY --from=build /opt/abstain /opt/abstain
RUN useradd --create-home user
USER user
WORKDIR /data
ENTRYPOINT ["/opt/abstain/bin/abstain"]
