package queue_test

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/queue"
)

func ExampleSideBySide() {
	config, err := pgxpool.ParseConfig("postgres://app@a,b/shop?target_session_attrs=read-write")
	if err != nil {
		fmt.Println(err)
		return
	}
	queue.SideBySide(config)
	fmt.Println(config.ConnConfig.ConnectTimeout, config.BeforeConnect != nil)
	// Output: 3s true
}
