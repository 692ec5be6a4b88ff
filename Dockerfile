# One image with the three programs; docker-compose.yml says which one runs.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# What --version says: --build-arg VERSION=$(git describe --tags --always) --build-arg REVISION=$(git rev-parse HEAD)
ARG VERSION REVISION
RUN build=github.com/sendquota/sendquota/internal/build && \
    CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X $build.version=$VERSION -X $build.revision=$REVISION" -o /out/ ./cmd/...

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/ /usr/local/bin/
USER nonroot
ENV SENDQUOTA_ADDR=0.0.0.0:8080
EXPOSE 8080
CMD ["api"]
