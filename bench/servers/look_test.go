package servers

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// awaitGone waits until none of the processes is left.
func awaitGone(t *testing.T, pids []int) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for slices.ContainsFunc(pids, running) {
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("of the processes %v some are left", pids)
		}
	}
}

// running says that a process has not ended; a zombie, which nobody waits for, has.
func running(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// listening are the IP addresses on which a server's processes listen.
func listening(t *testing.T, s *Server) []string {
	t.Helper()
	var addrs []string
	for _, pid := range s.Pids() {
		sockets := socketsOf(pid)
		for _, table := range []string{"tcp", "tcp6"} {
			for local, inode := range listeners(t, pid, table) {
				if slices.Contains(sockets, "socket:["+inode+"]") {
					addrs = append(addrs, local)
				}
			}
		}
	}
	if len(addrs) == 0 {
		t.Error("it listens on nothing")
	}
	return addrs
}

func socketsOf(pid int) []string {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	files, _ := os.ReadDir(folder) // none, if the process has ended
	var links []string
	for _, file := range files {
		if link, err := os.Readlink(folder + "/" + file.Name()); err == nil {
			links = append(links, link)
		}
	}
	return links
}

// listeners yields the address and the inode of each listening socket of a table.
func listeners(t *testing.T, pid int, table string) func(yield func(local, inode string) bool) {
	return func(yield func(local, inode string) bool) {
		file, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			return // the process has ended
		}
		defer file.Close()
		const local, state, inode, listen = 1, 3, 9, "0A"
		for lines := bufio.NewScanner(file); lines.Scan(); {
			words := strings.Fields(lines.Text())
			if len(words) > inode && words[state] == listen && !yield(address(t, words[local]), words[inode]) {
				return
			}
		}
	}
}

// address reads an address of /proc/net/tcp: groups of four bytes, each backwards.
func address(t *testing.T, text string) string {
	t.Helper()
	digits, _, _ := strings.Cut(text, ":")
	bytes, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	for group := range slices.Chunk(bytes, 4) {
		slices.Reverse(group)
	}
	return net.IP(bytes).String()
}
