package cage

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter is classic BPF over struct seccomp_data (seccomp(2)): the number of
// the call at 0, the architecture at 4, the arguments from 16 on, 8 bytes each.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

const (
	retAllow = unix.SECCOMP_RET_ALLOW
	retKill  = unix.SECCOMP_RET_KILL_PROCESS
	retEPERM = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	// What is answered ENOSYS is done in an older way by the C library.
	retENOSYS = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// assembler writes a program. Jumps are forward and at most 255 long, which is
// why each call has a block of its own that ends with a return.
type assembler struct{ code []unix.SockFilter }

func (a *assembler) emit(op uint16, k uint32, jt, jf uint8) {
	a.code = append(a.code, unix.SockFilter{Code: op, K: k, Jt: jt, Jf: jf})
}

func (a *assembler) load(off uint32)   { a.emit(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, off, 0, 0) }
func (a *assembler) and(mask uint32)   { a.emit(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, mask, 0, 0) }
func (a *assembler) ret(action uint32) { a.emit(unix.BPF_RET|unix.BPF_K, action, 0, 0) }

// low and high load the halves of an argument; both architectures that Linux
// has this for with ROCm are little-endian.
func (a *assembler) low(arg int)  { a.load(offArgs + 8*uint32(arg)) }
func (a *assembler) high(arg int) { a.load(offArgs + 8*uint32(arg) + 4) }

// equal, set and above return action when what is loaded is k, has a bit of k,
// or is more than k.
func (a *assembler) equal(k, action uint32) {
	a.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k, 0, 1)
	a.ret(action)
}

func (a *assembler) set(k, action uint32) {
	a.emit(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, k, 0, 1)
	a.ret(action)
}

func (a *assembler) above(k, action uint32) {
	a.emit(unix.BPF_JMP|unix.BPF_JGT|unix.BPF_K, k, 0, 1)
	a.ret(action)
}

// call writes the block of one system call: body sees it and, where it does not
// return, the call is allowed.
func (a *assembler) call(number uintptr, body func()) {
	at := len(a.code)
	a.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, uint32(number), 0, 0)
	body()
	a.ret(retAllow)
	a.code[at].Jf = uint8(len(a.code) - at - 1)
}

// deny writes the blocks of calls that are refused whatever their arguments.
func (a *assembler) deny(action uint32, numbers ...uintptr) {
	for _, n := range numbers {
		a.equal(uint32(n), action)
	}
}

// zero refuses a call unless the argument is zero, in all of its 64 bits.
func (a *assembler) zero(number uintptr, arg int) {
	a.call(number, func() {
		a.high(arg)
		a.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, 0)
		a.ret(retEPERM)
		a.low(arg)
		a.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, 0)
		a.ret(retEPERM)
	})
}

// idZero is zero for an argument that is an int: the kernel ignores its upper
// half.
func (a *assembler) idZero(number uintptr, arg int) {
	a.call(number, func() {
		a.low(arg)
		a.equal(0, retAllow)
		a.ret(retEPERM)
	})
}

// noBits refuses a call when the argument has one of the bits.
func (a *assembler) noBits(number uintptr, arg int, bits uint32) {
	a.call(number, func() {
		a.low(arg)
		a.set(bits, retEPERM)
	})
}

// none refuses a call when the argument, an int, is one of values.
func (a *assembler) none(number uintptr, arg int, values ...uint32) {
	a.call(number, func() {
		a.low(arg)
		for _, v := range values {
			a.equal(v, retEPERM)
		}
	})
}

// only refuses a call unless the argument, an int, is one of values.
func (a *assembler) only(number uintptr, arg int, values ...uint32) {
	a.call(number, func() {
		a.low(arg)
		for _, v := range values {
			a.equal(v, retAllow)
		}
		a.ret(retEPERM)
	})
}

// allowAll is no filter.
var allowAll = []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: retAllow}}

// install puts the filter on this thread and on what it executes. It wants
// no_new_privs, which is set.
func install(filter []unix.SockFilter) error {
	if len(filter) == 0 || len(filter) > 4096 {
		return errors.New("the filter is too long")
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return raw6(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)))
}
