// Where do the slots of this loop go?
package main

// #cgo LDFLAGS: -ltopdown
// #include <topdown.h>
import "C"

import (
	"fmt"
	"os"
	"runtime"
)

func lastError() string {
	var text [1000]C.char
	C.td_last_error(&text[0], 1000)
	return C.GoString(&text[0])
}

func main() {
	runtime.LockOSThread() // a handle belongs to the thread that opened it
	defer runtime.UnlockOSThread()

	var td *C.td_t
	if C.td_open(&td, nil) != 0 { // no counters here: say why, and go on with made-up ones
		fmt.Println("SIMULATED:", lastError())
		simulated := C.struct_td_options{size: C.sizeof_struct_td_options, flags: C.TD_FLAG_SIMULATE}
		if C.td_open(&td, &simulated) != 0 {
			os.Exit(1)
		}
	}
	defer C.td_close(td)

	var before, after C.struct_td_sample
	var shares C.struct_td_l1
	sum := 0
	C.td_read(td, &before)
	for i := 0; i < 10000000; i++ { // the region
		sum += i*sum + 1
	}
	C.td_read(td, &after)
	if C.td_decode_l1(&before, &after, &shares) != 0 {
		fmt.Println("not measured:", lastError())
		return
	}
	fmt.Printf("retiring %.1f %%, bad speculation %.1f %%, frontend bound %.1f %%, backend bound %.1f %%, each within %.1f points (%d)\n",
		100*shares.retiring, 100*shares.bad_speculation, 100*shares.frontend_bound, 100*shares.backend_bound, 100*shares.error, sum)
}
