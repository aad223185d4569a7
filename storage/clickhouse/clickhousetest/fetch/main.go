// Fetch gets the ClickHouse that tests run against.
package main

import (
	"log"

	"github.com/weirhq/weir/storage/clickhouse/clickhousetest"
)

func main() {
	if err := clickhousetest.Fetch(); err != nil {
		log.Fatal(err)
	}
}
