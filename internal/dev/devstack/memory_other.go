//go:build !linux

package devstack

func temporaryParent() string { return "" }
