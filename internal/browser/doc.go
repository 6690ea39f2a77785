// Package browser tests the console in a real browser, headless Chromium: `make test-browser` runs the tests, which the tag "browser" keeps
// out of `make test`. With SCREENSHOTS=1 it also takes the pictures of docs/console.md.
package browser
