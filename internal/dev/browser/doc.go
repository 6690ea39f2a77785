// Package browser tests the console in a real browser, headless Chromium: `make test-browser` runs
// the tests, which the tag "browser" keeps out of `make test`. `make screenshots` takes their
// pictures into docs/images.
package browser
