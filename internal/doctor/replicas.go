package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// lagLimit is for how many seconds a replica may say nothing; it speaks once a second.
const lagLimit = 10

// replicas looks at who would take over from a server, and who confirms what is
// scheduled.
func (s *server) replicas(context.Context) Check {
	if c, skip := s.embedded(); skip {
		return c
	}
	connected, err := strconv.Atoi(s.info["connected_slaves"])
	asked := s.exam.opts.WaitReplicas > 0 || s.exam.opts.Sentinel || s.exam.space.IsCluster()
	switch {
	case err != nil && !asked:
		return ok("none is asked for")
	case err != nil:
		return blind("the replicas", nil, "ACL SETUSER <user> +info, or see INFO replication")
	}
	well := 0
	var behind []string
	for i := range connected {
		if trouble := s.replica(s.info["slave"+strconv.Itoa(i)]); trouble != "" {
			behind = append(behind, trouble)
		} else {
			well++
		}
	}
	switch {
	case len(behind) > 0:
		return both(s.confirming(well), warn("see that the replica runs and reaches its master: its log, and INFO replication on both",
			"a failover loses what these lack: %s", some(behind)))
	case well < s.exam.opts.WaitReplicas:
		return s.confirming(well)
	case well == 0 && asked:
		return warn("add a replica", "no replica: if this master goes away, nobody takes over, and its jobs wait")
	case well == 0:
		return ok("none, and none is asked for")
	}
	return ok("%s in step", replicas(well))
}

// replica is what is wrong with a replica, by its line of INFO; "" if nothing.
func (s *server) replica(line string) string {
	r := make(map[string]string)
	for field := range strings.SplitSeq(line, ",") {
		key, value, _ := strings.Cut(field, "=")
		r[key] = value
	}
	addr := r["ip"] + ":" + r["port"]
	if r["state"] != "online" {
		return fmt.Sprintf("%s is not in step yet (%s)", addr, r["state"])
	}
	lag, _ := strconv.Atoi(r["lag"])
	if lag < lagLimit {
		return ""
	}
	sent, _ := strconv.ParseInt(s.info["master_repl_offset"], 10, 64)
	has, _ := strconv.ParseInt(r["offset"], 10, 64)
	return fmt.Sprintf("%s is silent for %d s and %d bytes behind", addr, lag, max(sent-has, 0))
}

// confirming looks whether what is scheduled can be confirmed.
func (s *server) confirming(well int) Check {
	want := s.exam.opts.WaitReplicas
	if well >= want {
		return Check{Status: OK}
	}
	return fail(fmt.Sprintf("start replicas, or set redis.wait_replicas to %d", well),
		"redis.wait_replicas is %d, and %s in step: whoever schedules hears that too few replicas confirm", want, replicas(well))
}

func replicas(n int) string {
	if n == 1 {
		return "1 replica is"
	}
	return fmt.Sprintf("%d replicas are", n)
}
