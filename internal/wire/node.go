package wire

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Heartbeat is the answer of Beat.
type Heartbeat struct {
	Now  time.Time // Redis's clock
	Held bool      // the node held its lease until now; false for its first beat, or if it was given up
	Gone []string  // nodes whose runs are to be reaped

	Defined int64 // rises whenever thresholds are defined or removed
	Nodes   int64 // that hold a lease

	Format error // ErrFormat if somebody has made it another one
	Empty  bool  // there is no format: everything was deleted
}

// Pulse is what a node sends with a heartbeat.
type Pulse struct {
	Node   string
	First  bool   // takes a lease; others only renew one
	Was    string // with First: the name whose lease this node has lost
	Lease  time.Duration
	Info   string // what the node says of itself, in JSON
	Canary bool   // lay a canary key, whose expiry is heard at the next beat
}

// Beat takes or renews a node's lease.
func (s *Store) Beat(ctx context.Context, p Pulse) (Heartbeat, error) {
	reply, err := s.run(ctx, s.beat, p.Node, ceilMS(p.Lease), p.Info, flag(p.Canary, "canary"), flag(p.First, "first"), p.Was)
	if err == nil {
		err = need(reply, 6)
	}
	if err != nil {
		return Heartbeat{}, err
	}
	beat := Heartbeat{Now: clock(reply[0], reply[1]), Held: asInt(reply[2]) == 1, Defined: asInt(reply[3]), Nodes: asInt(reply[4])}
	found := asString(reply[5])
	beat.Format, beat.Empty = judgeFormat(found, Format), found == ""
	for _, name := range reply[6:] {
		beat.Gone = append(beat.Gone, asString(name))
	}
	return beat, nil
}

func flag(on bool, word string) string {
	if on {
		return word
	}
	return ""
}

// NodeName is an engine's name as a node of this partition: no other partition has it,
// for run ids are made of it; and it is a new one after each lease that was lost here.
func (s *Store) NodeName(engine string, losses int) string {
	if s.tag != "" {
		engine += "-p" + strconv.Itoa(s.Partition())
	}
	if losses > 0 {
		engine += "-" + strconv.Itoa(losses)
	}
	return engine
}

// EngineOf is the engine of a node.
func EngineOf(node string) string {
	engine, _, _ := strings.Cut(node, "-")
	return engine
}

// Canary is the key whose expiry proves to a node that events arrive.
func (s *Store) Canary(node string) string { return s.Of("canary:" + node) }

// Reap frees the runs of a node that was given up, of all tasks, and then
// forgets the node. It returns how many runs it freed. Several nodes may do it
// at the same time, and an interrupted one is done again.
func (s *Store) Reap(ctx context.Context, node, lastError string) (int, error) {
	tasks, err := s.Tasks(ctx)
	if err != nil {
		return 0, err
	}
	freed := 0
	for _, task := range tasks {
		for cursor := "0"; ; {
			reply, err := s.run(ctx, s.reap, node, task, cursor, lastError, s.Wake(s.db))
			if err == nil {
				err = need(reply, 2)
			}
			if err != nil {
				return freed, err
			}
			freed += int(asInt(reply[1]))
			if cursor = asString(reply[0]); cursor == "0" {
				break
			}
		}
	}
	return freed, s.forget(ctx, node)
}

func (s *Store) forget(ctx context.Context, node string) error {
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRem(ctx, s.Of("nodes"), node)
		p.SRem(ctx, s.Of("gone"), node)
		p.HDel(ctx, s.Of("claims"), node)
		p.HDel(ctx, s.Of("info"), node)
		p.Del(ctx, s.Canary(node))
		return nil
	})
	return err
}
