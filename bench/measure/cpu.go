package measure

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the CPU times in /proc.
const tick = 10 * time.Millisecond

// process is what is known of one process.
type process struct {
	parent int
	cpu    time.Duration // with that of the children that have ended
}

// cpuOf is the CPU time of a process and of all that it started.
func cpuOf(pid int) (time.Duration, error) {
	all, err := processes()
	if err != nil {
		return 0, err
	}
	if _, ok := all[pid]; !ok {
		return 0, fmt.Errorf("there is no process %d", pid)
	}
	return cpuBelow(all, pid), nil
}

func cpuBelow(all map[int]process, pid int) time.Duration {
	sum := all[pid].cpu
	for child, p := range all {
		if p.parent == pid {
			sum += cpuBelow(all, child)
		}
	}
	return sum
}

func processes() (map[int]process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		return nil, errors.Join(errors.New("no processes in /proc: CPU times need Linux"), err)
	}
	all := make(map[int]process, len(files))
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
		if all[pid], err = parseStat(stat); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return all, nil
}

// parseStat reads a stat file of /proc: what follows the name, which may have any
// characters, begins with the state.
func parseStat(stat []byte) (process, error) {
	const parent, utime, stime, cutime, cstime = 1, 11, 12, 13, 14
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= cstime {
		return process{}, fmt.Errorf("it has %d fields behind the name only", len(fields))
	}
	var p process
	var err error
	if p.parent, err = strconv.Atoi(fields[parent]); err != nil {
		return process{}, err
	}
	for _, i := range []int{utime, stime, cutime, cstime} {
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return process{}, err
		}
		p.cpu += time.Duration(ticks) * tick
	}
	return p, nil
}
