# ztserve as a container image. `make image` builds it and writes its SBOM; `docker build .` works too.
#
#   docker run --read-only --cap-drop ALL -p 8080:8080 -v /srv/models:/models:ro ztserve
#
# The image has the program and the libraries that it loads: no shell and no package manager. It runs as user 65532, and
# nothing of its own needs to be writable. State (what has been verified) and uploads are kept below /models if user 65532
# may write there; for state elsewhere, mount a volume at /var/lib/ztserve and set ZTSERVE_STATE_DIR to that path.
# Every setting is an environment variable: docs/configuration.md.
ARG DEBIAN=docker.io/library/debian:trixie-slim

FROM ${DEBIAN} AS build
WORKDIR /src
# Before the sources, so that a change of them does not install everything again.
COPY deploy/packages.sh deploy/
RUN bash -euc '. deploy/packages.sh; packages_install build image'
COPY . .
RUN deploy/build.sh /build -DCMAKE_BUILD_TYPE=Release -DZT_TESTS=OFF && deploy/image/root.sh /build/ztserve /root-of-image

FROM scratch
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="ztserve" \
      org.opencontainers.image.description="A server for tensor container files" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /root-of-image /
# No VOLUME: models that another image copies to /models would be lost.
# Some platforms choose the port, and tell it in PORT.
# XDG_STATE_HOME: the state of a bucket (ZTSERVE_ROOT=s3://…) is below /var/lib/ztserve.
ENV ZTSERVE_ROOT=/models XDG_STATE_HOME=/var/lib PORT=8080 ZTSERVE_LISTEN=0.0.0.0:\$PORT
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/usr/bin/ztserve", "healthcheck"]
ENTRYPOINT ["/usr/bin/ztserve"]
CMD ["serve"]
