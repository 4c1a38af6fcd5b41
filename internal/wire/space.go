package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Partitions is how many partitions a cluster's data are in. The number is part
// of the format: whoever sets a job in a cluster, with or without Keyfuse, must
// choose the same one. So many masters can share the work at most.
const Partitions = 16

// tags are the partitions' hash tags. The slot of each lies in the middle of the
// sixteenth of all slots that is its partition's, so that masters which share the
// slots evenly share the partitions evenly: three have 5, 6 and 5 of them.
var tags = [Partitions]string{
	"{kf0vu}", "{kf1o}", "{kf2tu}", "{kf3uu}", "{kf4ru}", "{kf5su}", "{kf6pu}", "{kf7d}",
	"{kf8nq}", "{kf9oq}", "{kf10hx}", "{kf11ix}", "{kf12jy}", "{kf13c}", "{kf14lx}", "{kf15i}",
}

const slots = 16384

// partitionOf is the partition that holds an id: the sixteenth of all slots that
// the id itself would be in, as CLUSTER KEYSLOT answers it.
func partitionOf(id string) int { return keySlot(id) / (slots / Partitions) }

// keySlot is the slot of a key in a cluster, by
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/:
// CRC16 (XMODEM) of the key, or of what its first braces hold if that is not empty.
func keySlot(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
	}
	return int(crc) % slots
}

// Space is all of Keyfuse's data in one Redis: one partition or, in a cluster,
// Partitions of them, each with an index and leases of its own. What is about one
// id is in one of them; tasks, pauses and definitions of patterns are in all.
type Space struct {
	stores  []*Store
	cluster *redis.ClusterClient // nil unless it is one
}

// NewSpace makes a space on a connection: a *redis.ClusterClient's has partitions.
func NewSpace(rdb redis.UniversalClient) (*Space, error) {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		store, err := NewStore(rdb, DBOf(rdb))
		return &Space{stores: []*Store{store}}, err
	}
	scripts, err := loadScripts()
	if err != nil {
		return nil, err
	}
	s := &Space{cluster: cluster}
	for _, tag := range tags {
		s.stores = append(s.stores, &Store{Names: Names{tag}, rdb: rdb, scripts: scripts})
	}
	return s, nil
}

// Within makes scripts' calls end after so long, where the client obeys deadlines: a
// server that is frozen would hold each for several read timeouts.
func (s *Space) Within(limit time.Duration) *Space {
	for _, store := range s.stores {
		store.limit = limit
	}
	return s
}

// All are the stores of all partitions, in their order.
func (s *Space) All() []*Store { return s.stores }

// Of is the store of an id's partition.
func (s *Space) Of(id string) *Store {
	if s.cluster == nil {
		return s.stores[0]
	}
	return s.stores[partitionOf(id)]
}

// IsCluster says whether the space has partitions.
func (s *Space) IsCluster() bool { return s.cluster != nil }

// Refresh learns anew which server holds which partition, if it is a cluster.
func (s *Space) Refresh(ctx context.Context) {
	s.stores[0].refresh(ctx)
}

func (s *Store) refresh(ctx context.Context) {
	if cluster, ok := s.rdb.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

// lookAgain makes a cluster's client ask which server has what after an error of the
// connection, and gives the error. By itself it would go on for a minute to ask the
// one that has died.
func (s *Store) lookAgain(ctx context.Context, err error) error {
	if _, answered := errors.AsType[redis.Error](err); err != nil && !answered {
		s.refresh(ctx)
	}
	return err
}

// Server is the server that holds a store's partition now: for what has no key,
// such as subscriptions and settings, and in a pipeline.
func (s *Store) Server(ctx context.Context) (redis.UniversalClient, error) {
	cluster, ok := s.rdb.(*redis.ClusterClient)
	if !ok {
		return s.rdb, nil
	}
	return cluster.MasterForKey(ctx, s.Root())
}

// ErrMoving means that a cluster moves the slot of a partition to another server.
// Its keys are on two servers then, so that no script may run; nothing was changed.
var ErrMoving = errors.New("the cluster moves this partition to another server: it can't be changed until that is done")

// moving says whether a script was refused for that: its first command asks.
func moving(err error) bool {
	_, refused := errors.AsType[redis.Error](err)
	return refused && (strings.HasPrefix(err.Error(), "TRYAGAIN") || strings.Contains(err.Error(), "non local key"))
}

const (
	movingPatience = 2 * time.Second // how long a script waits for its partition
	movingPause    = 20 * time.Millisecond
)

// pauseMoving waits for a partition that is being moved; it gives up at until.
func pauseMoving(ctx context.Context, until time.Time) error {
	if time.Now().After(until) {
		return ErrMoving
	}
	timer := time.NewTimer(movingPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrMoving, ctx.Err())
	case <-timer.C:
		return nil
	}
}

// Partition is the partition's number; 0 if there are none.
func (n Names) Partition() int { return max(0, slices.Index(tags[:], n.tag)) }
