// Package publicapi reads what the module exports: every name that a program which imports it can
// write, with its type.
//
// `make api` writes that as api.txt, at the top of the repository, so that a change of the public
// API shows in a review, and the package's tests fail when api.txt is not what the code exports, or
// when an exported name has a type of an internal package.
package publicapi
