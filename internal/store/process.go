package store

import (
	"os"
	"strconv"
)

// ProcessName names this process by its host and its id.
func ProcessName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "/" + strconv.Itoa(os.Getpid())
}
