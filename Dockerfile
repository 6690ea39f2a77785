# The daybook program alone, without a shell, as a user without rights.
FROM golang:1.26 AS build
WORKDIR /src
# The modules first: they change less often than the code.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
# What the program calls itself: docker build --build-arg VERSION=v1.2.3
ARG VERSION=""
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w -X main.version=${VERSION}" -o /out/daybook ./cmd/daybook

FROM gcr.io/distroless/static:nonroot AS daybook
COPY --from=build /out/daybook /usr/local/bin/daybook
USER nonroot:nonroot
ENTRYPOINT ["/usr/local/bin/daybook"]
