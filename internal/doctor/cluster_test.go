package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/redistest"
	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// patients is a cluster in which one thing after the other is made ill, and mended.
type patients struct {
	*testing.T
	cluster *redistest.Cluster
	rdb     *redis.ClusterClient
	space   *wire.Space
}

func (p *patients) run(opts Options) []Check { return Run(p.Context(), p.rdb, opts) }

func (p *patients) slot(store *wire.Store) int {
	return int(p.rdb.ClusterKeySlot(p.Context(), store.Root()).Val())
}

// of are the partitions of a master.
func (p *patients) of(master *redistest.Server) []*wire.Store {
	p.Helper()
	slots := p.cluster.Slots(master)
	return slices.DeleteFunc(slices.Clone(p.space.All()), func(store *wire.Store) bool { return !slices.Contains(slots, p.slot(store)) })
}

func TestEachMasterOfAClusterIsLookedAt(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 1, "--appendonly", "yes", "--appendfsync", "no", "--notify-keyspace-events", "Ex$")
	rdb := cluster.Client(t, func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled = true })
	alive(t, rdb, "n1", `{"Tasks":["t"]}`)
	for i := range 50 {
		schedule(t, rdb, client.Spec{ID: fmt.Sprint("job", i), Task: "t", In: time.Hour})
	}
	define(t, rdb, []string{"c"}, "c")
	for _, test := range []struct {
		name string
		run  func(p *patients)
	}{
		{"counters on one master", oneCounts},
		{"well", well},
		{"a partition is moved", moved},
		{"a pattern is missing", patternMissing},
		{"keys under wrong tags", wrongTags},
		{"notifications are off on one master", oneSilent},
		{"leases are missing", leasesMissing},
		{"a user with the least rights", leastRights},
		{"a user who may not ask for slots", noSlots},
		{"a master without partitions", idleMaster},
		{"not told that it is a cluster", oneNode},
		{"a master without its replica", noReplica},
		{"a master is away", masterAway}, // the last one: it stays away
	} {
		t.Run(test.name, func(t *testing.T) { test.run(&patients{t, cluster, rdb, spaceOf(t, rdb)}) })
	}
}

func oneCounts(p *patients) {
	counted := p.cluster.Master(p.slot(p.space.Of("c")))
	for _, master := range p.cluster.Masters() {
		set(p.T, master.Client(p.T), "CONFIG", "SET", "notify-keyspace-events", "Ex")
	}
	checks := p.run(Options{})
	want(p.T, checks, "notifications", Warn, "on "+counted.Addr()+": ", "lacks $")
	set(p.T, counted.Client(p.T), "CONFIG", "SET", "notify-keyspace-events", "Ex$")
	want(p.T, p.run(Options{}), "notifications", OK)

	define(p.T, p.rdb, []string{"p:*", "unused"}, "p:1", "p:2", "p:3")
	want(p.T, p.run(Options{}), "notifications", Warn, "lacks $")
	for _, master := range p.cluster.Masters() {
		set(p.T, master.Client(p.T), "CONFIG", "SET", "notify-keyspace-events", "Ex$")
	}
}

func well(p *patients) {
	checks := p.run(Options{WaitReplicas: 1})
	for _, c := range checks {
		if c.Status != OK || c.Fix != "" {
			p.Errorf("%+v", c)
		}
	}
	masters := p.cluster.Masters()
	want(p.T, checks, "cluster", OK, "on all 3 masters: ", "16384")
	want(p.T, checks, "partitions", OK, masters[0].Addr()+" 5", masters[1].Addr()+" 6", masters[2].Addr()+" 5", "all daemons serve all")
	want(p.T, checks, "events", OK, "on all 3 masters: an expiry was heard of within")
	want(p.T, checks, "replicas", OK, "on all 3 masters: 1 replica is in step")
	want(p.T, checks, "class keys", OK, "all 54 make jobs")
	want(p.T, checks, "counters", OK, "4 count")
}

func moved(p *patients) {
	masters := p.cluster.Masters()
	from, to := masters[1], masters[2]
	store := p.of(from)[0] // in which events would be looked for
	slot := p.slot(store)
	source, target := from.Client(p.T), to.Client(p.T)
	set(p.T, target, "CLUSTER", "SETSLOT", slot, "IMPORTING", source.ClusterMyID(p.Context()).Val())
	set(p.T, source, "CLUSTER", "SETSLOT", slot, "MIGRATING", target.ClusterMyID(p.Context()).Val())
	checks := p.run(Options{})
	set(p.T, source, "CLUSTER", "SETSLOT", slot, "STABLE")
	set(p.T, target, "CLUSTER", "SETSLOT", slot, "STABLE")
	want(p.T, checks, "cluster", Warn, "on "+from.Addr()+": ", tagOf(store)+" to "+to.Addr(), "redis-cli --cluster fix "+from.Addr())
	for _, name := range []string{"events", "partitions", "nodes", "class keys", "counters"} {
		want(p.T, checks, name, OK)
	}
	want(p.T, p.run(Options{}), "cluster", OK)
}

func patternMissing(p *patients) {
	store := p.space.All()[7]
	definition := p.rdb.HGet(p.Context(), store.Of("thresholds"), "p:*").Val()
	set(p.T, p.rdb, "HDEL", store.Of("thresholds"), "p:*")
	want(p.T, p.run(Options{}), "thresholds", Fail, `"p:*"`, "define it again")
	set(p.T, p.rdb, "HSET", store.Of("thresholds"), "p:*", "9"+definition)
	want(p.T, p.run(Options{}), "thresholds", Fail, `"p:*"`, "define it again")
	define(p.T, p.rdb, []string{"p:*"})
	want(p.T, p.run(Options{}), "thresholds", OK)
}

func wrongTags(p *patients) {
	right := p.space.Of("order:42")
	wrong := p.space.All()[(right.Partition()+5)%wire.Partitions]
	keys := []string{wrong.Class("order:42"), wrong.Class("other:1"), "class:order:43", "class:{x}order:44", "class:"}
	for _, key := range keys {
		set(p.T, p.rdb, "SET", key, "t", "EX", "100")
	}
	checks := p.run(Options{IDPrefix: "order:"})
	want(p.T, checks, "class keys", Warn,
		fmt.Sprintf("not found by their id: 1, as %q (it would be %q)", wrong.Class("order:42"), right.Class("order:42")),
		fmt.Sprintf("nobody runs in a cluster: 1, as %q (it would be %q)", "class:order:43", p.space.Of("order:43").Class("order:43")))
	want(p.T, p.run(Options{}), "class keys", Warn, `nobody runs in a cluster: 3`, `"class:{x}order:44"`)
	for _, key := range keys {
		set(p.T, p.rdb, "DEL", key)
	}
	want(p.T, p.run(Options{}), "class keys", OK)
}

func oneSilent(p *patients) {
	masters := p.cluster.Masters()
	silent := masters[1].Client(p.T)
	set(p.T, silent, "CONFIG", "SET", "notify-keyspace-events", "")
	checks := p.run(Options{})
	set(p.T, silent, "CONFIG", "SET", "notify-keyspace-events", "Ex$")
	for _, name := range []string{"notifications", "events"} {
		want(p.T, checks, name, Fail, "on "+masters[1].Addr()+": ")
		if c := find(p.T, checks, name); strings.Contains(c.Detail, masters[0].Addr()) {
			p.Errorf("it names a master that is well: %+v", c)
		}
	}
	want(p.T, checks, "notifications", Fail, "on "+masters[1].Addr()+": CONFIG SET notify-keyspace-events Ex$\n")
}

func leasesMissing(p *patients) {
	store := p.space.All()[3]
	set(p.T, p.rdb, "ZREM", store.Of("nodes"), "n1")
	checks := p.run(Options{})
	want(p.T, checks, "partitions", Fail, "no daemon has a lease of "+tagOf(store), "reach 127.0.0.1:")
	want(p.T, checks, "nodes", OK, "1 alive")

	alive(p.T, p.rdb, "n2", `{"Tasks":["t"],"Degraded":"1 of 16 partitions: no events"}`)
	set(p.T, p.rdb, "ZREM", store.Of("nodes"), "n1")
	set(p.T, p.rdb, "ZADD", store.Of("nodes"), time.Now().Add(-time.Minute).UnixMilli(), "n1") // and was not reaped
	checks = p.run(Options{})
	want(p.T, checks, "partitions", Warn, "daemon n1 has no lease of "+tagOf(store))
	want(p.T, checks, "nodes", Warn, "n2: 1 of 16 partitions")
	for _, store := range p.space.All() {
		set(p.T, p.rdb, "ZREM", store.Of("nodes"), "n2")
	}
	alive(p.T, p.rdb, "n1", `{"Tasks":["t"]}`)
}

func leastRights(p *patients) {
	const least = `resetchannels &__keyevent@0__:expired &__keyevent@0__:incrby &keyfuse:{kf*}:wake:0 ` +
		`+@read +@write +@pubsub +@connection +eval +evalsha +script|load +time +config|get +config|set +info +cluster|slots`
	for _, user := range []struct {
		name, more string
		rules      []string
		cluster    Status
	}{
		{"least", "~*", nil, Warn},
		{"doctor", "~* +cluster|info +cluster|nodes +cluster|keyslot", nil, OK},
		{"ids", "~{kf*}order:* ~class:{kf*}order:* ~keyfuse:*", nil, Warn},
		{"keys", "~keyfuse:*", []string{"~{kf*}order:*", "~class:{kf*}order:*"}, Warn},
		{"channels", "~* resetchannels &keyfuse:*", []string{"&__keyevent@0__:expired", "&__keyevent@0__:incrby"}, Warn},
		{"wakes", "~* resetchannels &__keyevent@*", []string{"&keyfuse:{kf*}:wake:0"}, Warn},
	} {
		for _, s := range p.cluster.Servers {
			args := []any{"ACL", "SETUSER", user.name, "on", ">p"}
			for word := range strings.FieldsSeq(least + " " + user.more) {
				args = append(args, word)
			}
			set(p.T, s.Client(p.T), args...)
		}
		rdb := p.cluster.Client(p.T, func(o *redis.ClusterOptions) { o.Username, o.Password = user.name, "p" })
		checks := Run(p.Context(), rdb, Options{IDPrefix: "order:", WaitReplicas: 1})
		want(p.T, checks, "cluster", user.cluster)
		if user.rules == nil {
			for _, name := range []string{"permissions", "events", "partitions", "nodes", "class keys"} {
				want(p.T, checks, name, OK)
			}
			continue
		}
		want(p.T, checks, "permissions", Fail, "on all 3 masters: ", "lacks "+strings.Join(user.rules, " ")+"\n", "ACL SETUSER <user> "+user.rules[0])
	}
}

// Without CLUSTER SLOTS the client finds no server.
func noSlots(p *patients) {
	for _, s := range p.cluster.Servers {
		set(p.T, s.Client(p.T), "ACL", "SETUSER", "noslots", "on", ">p", "~*", "&*", "+@all", "-cluster")
	}
	rdb := p.cluster.Client(p.T, func(o *redis.ClusterOptions) { o.Username, o.Password = "noslots", "p" })
	want(p.T, Run(p.Context(), rdb, Options{}), "redis", Fail, "+cluster|slots")
}

func idleMaster(p *patients) {
	masters := p.cluster.Masters()
	var slots []int
	for _, store := range p.of(masters[2]) {
		slots = append(slots, p.slot(store))
	}
	p.cluster.MoveSlots(masters[2], masters[1], slots...)
	checks := p.run(Options{})
	p.cluster.MoveSlots(masters[1], masters[2], slots...)
	want(p.T, checks, "cluster", OK)
	want(p.T, checks, "partitions", Warn, "none of the 16 partitions, and so no part in the work: "+masters[2].Addr(),
		"twice their share of the 16 partitions or more: "+masters[1].Addr()+" 11")
	want(p.T, checks, "class keys", OK, "all 54 make jobs")
	want(p.T, p.run(Options{}), "partitions", OK)
}

func oneNode(p *patients) {
	node := p.cluster.Masters()[0].Client(p.T)
	want(p.T, Run(p.Context(), node, Options{}), "redis", Fail, "a node of a cluster", "redis.cluster: true")
	single := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{redistest.Start(p.T).Addr()}})
	defer single.Close() //nolint:errcheck // all answers are in
	want(p.T, Run(p.Context(), single, Options{}), "redis", Fail, "remove redis.cluster")
}

func noReplica(p *patients) {
	master := p.cluster.Masters()[0]
	replica := p.cluster.Replicas(master)[0]
	replica.Kill()
	awaitInfo(p.T, master.Client(p.T), "connected_slaves:0")
	want(p.T, p.run(Options{}), "replicas", Warn, "on "+master.Addr()+": no replica", "on "+master.Addr()+": add a replica")
	want(p.T, p.run(Options{WaitReplicas: 1}), "replicas", Fail, "on "+master.Addr()+": redis.wait_replicas is 1, and 0 replicas are in step")
}

func masterAway(p *patients) {
	masters := p.cluster.Masters()
	masters[0].Kill() // its replica is away
	other := masters[1].Client(p.T)
	for !strings.Contains(other.ClusterInfo(p.Context()).Val(), "cluster_state:fail") {
		if p.Context().Err() != nil {
			p.Fatal("the cluster stays well")
		}
	}
	checks := p.run(Options{})
	want(p.T, checks, "redis", Fail, "on "+masters[0].Addr()+": can't be reached", "start it")
	want(p.T, checks, "partitions", Fail, "no master answers for {kf0vu}, ")
	want(p.T, checks, "cluster", Fail, "cluster_state is fail", "CLUSTER FAILOVER TAKEOVER")
	for _, name := range []string{"nodes", "thresholds", "class keys", "counters"} {
		want(p.T, checks, name, Fail, "stopped answering")
	}
}

func TestSlotsThatLeaveAreReadFromANodesOwnLine(t *testing.T) {
	t.Parallel()
	got := leavingSlots("aa 10.0.0.1:7000@17000,host myself,master - 0 0 1 connected 0-5460 [7->-bb] [9-<-bb] [11->-cc]\n" +
		"bb 10.0.0.2:7000@17000 master - 0 0 2 connected 5461-10922\n\nx\n")
	if len(got) != 2 || got[7] != "10.0.0.2:7000" || got[11] != "cc" {
		t.Error(got)
	}
}
