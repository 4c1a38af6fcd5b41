package servers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// tick is the unit of CPU time in /proc: Linux shows a hundredth of a second on every
// machine, whatever its kernel counts in.
const tick = 10 * time.Millisecond

// The fields of /proc/<pid>/stat behind the name of the program, which may hold anything.
const (
	statParent  = 1
	statTimes   = 11 // user, system, and both of the children that were waited for
	statTimesTo = statTimes + 4
	statStart   = 19 // when it started, in ticks since the machine did
	statCount   = statStart + 1
)

// stat is those fields; none if the process has ended.
func stat(pid int) []int64 {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	words := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(words) < statCount {
		return nil
	}
	fields := make([]int64, statCount)
	for i, word := range words[:statCount] {
		fields[i], _ = strconv.ParseInt(string(word), 10, 64) // the first is a letter
	}
	return fields
}

// cpu is the time that a process and those of its children that have ended have used.
func cpu(pid int) time.Duration {
	fields := stat(pid)
	if fields == nil {
		return 0
	}
	var ticks int64
	for _, n := range fields[statTimes:statTimesTo] {
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// CPUOf is the time that a process and all that it started have used, user and system,
// that of children which have ended included. It counts in steps of 10 ms a process.
func CPUOf(pid int) (time.Duration, error) {
	if stat(pid) == nil {
		return 0, fmt.Errorf("there is no process %d in /proc: CPU times are those of Linux", pid)
	}
	return cpuOf([]int{pid}), nil
}

func cpuOf(roots []int) time.Duration {
	var sum time.Duration
	for _, pid := range tree(roots) {
		sum += cpu(pid)
	}
	return sum
}

// tree is the processes and all that they started.
func tree(roots []int) []int {
	if len(roots) == 0 {
		return nil
	}
	children := make(map[int][]int)
	folders, _ := filepath.Glob("/proc/[0-9]*") // the pattern is a good one
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		if fields := stat(pid); fields != nil {
			parent := int(fields[statParent])
			children[parent] = append(children[parent], pid)
		}
	}
	all := append([]int(nil), roots...)
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// started is when a process was started, which tells it from a later one of the same id;
// zero if there is none.
func started(pid int) int64 {
	if fields := stat(pid); fields != nil {
		return fields[statStart]
	}
	return 0
}

// resident is a process's memory in bytes, shared pages included.
func resident(pid int) (int64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	return pages * int64(os.Getpagesize()), nil
}
