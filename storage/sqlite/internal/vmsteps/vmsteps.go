//go:build cgo && linux

// Package vmsteps counts the instructions that SQLite's virtual machine runs, so that tests
// can tell how the work of a query grows. The driver does not count them.
package vmsteps

/*
#cgo LDFLAGS: -Wl,--unresolved-symbols=ignore-all

#include <stdlib.h>
typedef struct sqlite3 sqlite3;
// The driver has this function: https://sqlite.org/c3ref/progress_handler.html
void sqlite3_progress_handler(sqlite3*, int, int(*)(void*), void*);

static int count(void *steps) { ++*(long long*)steps; return 0; }
static void count_steps(void *db, int every, void *steps) { sqlite3_progress_handler(db, every, steps ? count : 0, steps); }
*/
import "C"

import (
	"reflect"
	"unsafe"

	"github.com/mattn/go-sqlite3"
)

// every is the number of instructions between two calls of the handler.
const every = 100

// Count returns how many instructions a connection runs during do, rounded to hundreds.
func Count(c *sqlite3.SQLiteConn, do func()) int {
	db := reflect.ValueOf(c).Elem().FieldByName("db").UnsafePointer()
	calls := C.malloc(C.size_t(unsafe.Sizeof(C.longlong(0))))
	defer C.free(calls)
	*(*C.longlong)(calls) = 0
	C.count_steps(db, every, calls)
	defer C.count_steps(db, 0, nil)
	do()
	return int(*(*C.longlong)(calls)) * every
}
