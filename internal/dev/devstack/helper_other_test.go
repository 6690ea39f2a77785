//go:build !linux

package devstack

const helperDir = "DAYBOOK_DEVSTACK_TEST_DIR"

func runHelper(string) {}
