package report

import (
	"strings"

	"github.com/keyfuse-io/keyfuse/bench/result"
)

// says is what a figure is: where more has to be known than its name tells, in words
// for people who only read the page.
func (m *measured) says(figure string) string {
	switch figure {
	case "kill-lost":
		return "not run, or not run again, within " + m.watched + " after a kill -9 of the worker"
	case "memory", "growth-memory":
		return m.figures[figure].What + ", which is in RAM, on disk or all of a process: the notes say what is counted"
	}
	return m.figures[figure].What
}

// watched is for how long jobs are waited for after a kill, in a comparison of a size.
func watched(size string) string {
	if size == "full" {
		return "the 150 s that were watched"
	}
	return "the time that was watched"
}

// remark is what is to be known of a figure of a way, whatever the rounds were like; it
// is empty for most.
func remark(w result.Way, figure string, c cell) string {
	switch figure {
	case "memory", "growth-memory":
		return counted(w)
	case "late-p99", "late-max":
		if w.Name == "zset-poll" {
			return pollsLate
		}
	case "idle-cpu-store":
		if strings.Contains(w.Store, "redis") {
			return idleRedis
		}
	case "kill-lost":
		switch {
		case c.max > 0 && w.Name == "river":
			return riverRescues
		case c.max > 0 && w.Store == "":
			return inProcess
		}
	}
	return ""
}

const (
	stopped   = "scheduling was stopped after some 10 s: the rate is of what was done by then"
	pollsLate = "one loop looks every 100 ms, and takes what is due in two round trips, up to 1,000 at a time: " +
		"a job waits for the next look, and when one look takes longer, all that became due meanwhile waits for its end; " +
		"in a trial beside 200,000 pending, with a p99 of 107 ms, those looks were long in the round trip of ZRANGE, " +
		"up to 101 ms, while LATENCY told of nothing above 14 ms"
	idleRedis = "all Redis servers run with the repository's redis.conf and its hz 100: where that was tried, an idle one " +
		"without any client took 0.5 to 0.7 % of a core, and with Redis's default of hz 10 it took 0.15 to 0.25 %"
	riverRescues = "not lost: by default River runs again after an hour what a worker had taken (RescueStuckJobsAfter), which was not waited for"
	inProcess    = "its jobs were in the process that was killed"
)

// counted is what stands for the memory of the stores that keep a way's jobs. That it is
// the heap of a way in one process is noted with each value.
func counted(w result.Way) string {
	var all []string
	for store := range strings.SplitSeq(w.Store, "+") {
		switch store {
		case "redis":
			all = append(all, "RAM: Redis's used_memory")
		case "postgres":
			all = append(all, "disk: PostgreSQL's tables with their indexes")
		case "rabbitmq":
			all = append(all, "RAM: by how much the resident memory of RabbitMQ grew; what it keeps on disk is not in it")
		case "beanstalkd":
			all = append(all, "RAM: by how much the resident memory of beanstalkd grew; what it keeps on disk is not in it")
		}
	}
	return strings.Join(all, "; ")
}
