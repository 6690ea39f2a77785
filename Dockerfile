# The daybook program alone, without a shell, as a user without rights. Its root file system may be read-only.
FROM docker.io/library/golang:1.26 AS build
WORKDIR /src
# The modules first: they change less often than the code.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
# The licences of what it links, which belong with the program.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go run -C tools/security ./licences -C ../.. -write /out/THIRD_PARTY_LICENSES ./cmd/daybook
# What the program calls itself: docker build --build-arg VERSION=v1.2.3 --build-arg COMMIT=$(git rev-parse HEAD)
ARG VERSION=""
ARG COMMIT=""
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w -X main.version=${VERSION} -X main.commit=${COMMIT}" \
    -o /out/daybook ./cmd/daybook

FROM gcr.io/distroless/static:nonroot AS daybook
ARG VERSION=""
ARG COMMIT=""
LABEL org.opencontainers.image.title="Daybook" \
      org.opencontainers.image.description="Durable work queue and double-entry ledger on PostgreSQL and Temporal" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/daybook-dev/daybook" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}"
COPY --from=build /src/LICENSE /out/THIRD_PARTY_LICENSES /usr/share/doc/daybook/
COPY --from=build /out/daybook /usr/local/bin/daybook
USER nonroot:nonroot
# Whether the database answers, and has the schema of this program: without either, no command works.
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["/usr/local/bin/daybook", "migrate", "status", "--json"]
ENTRYPOINT ["/usr/local/bin/daybook"]
