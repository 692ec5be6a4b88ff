# One image with one program, which runs the API or the worker by its name; docker-compose.yml chooses the name.
# Cross-compile it for other processors: docker buildx build --platform linux/amd64,linux/arm64 .
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY client/go.mod client/
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH
# The text of --version: --build-arg VERSION=$(git describe --tags --always) --build-arg REVISION=$(git rev-parse HEAD)
ARG VERSION REVISION
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    build=github.com/sendquota/sendquota/internal/build && \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -tags nodev \
        -ldflags="-s -w -X $build.version=$VERSION -X $build.revision=$REVISION" -o /out/bin/sendquota ./cmd/sendquota && \
    ln -s sendquota /out/bin/api && ln -s sendquota /out/bin/worker && \
    mkdir -p /out/share/doc/sendquota && cp LICENSE /out/share/doc/sendquota/ && \
    sh internal/build/notices.sh > /out/share/doc/sendquota/THIRD_PARTY_NOTICES

FROM gcr.io/distroless/static-debian12:nonroot
ARG VERSION REVISION
LABEL org.opencontainers.image.title="sendquota" \
      org.opencontainers.image.description="Scheduled messages within quotas: API, worker and the operator's tool" \
      org.opencontainers.image.source="https://github.com/sendquota/sendquota" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /out/ /usr/local/
# Use numbers, so that Kubernetes can check that it is not root.
USER 65532:65532
ENV SENDQUOTA_ADDR=0.0.0.0:8080
EXPOSE 8080
CMD ["api"]
