package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/keyfuse-io/keyfuse/internal/wire"
)

// Errors of hits.
var (
	// ErrNotCounter: the counter's key holds no integer.
	ErrNotCounter = errors.New("the key holds no counter")
	ErrOverflow   = errors.New("the counter would overflow")
	ErrItems      = errors.New("the window has no place for the item")
	// ErrPending: a job of another kind is pending under the counter's id.
	ErrPending = errors.New("the id is a pending job's")
)

// Hit is a hit to count.
type Hit struct {
	ID string // the counter's key; never a pattern
	By int64  // how many hits it counts for: 1 to 2^53 - 1; zero means one
	// Item is text, in UTF-8, for the handler; empty means none. The window
	// collects the items of its hits, and the payload is then a JSON object with
	// these members: count, reason, window_start and window_end (RFC 3339),
	// payload or, unless it is UTF-8, payload_base64 (the definition's, if it has
	// one), and items, in order.
	Item string
	// RequestID, unless empty, names this hit: any bytes, at most 200. For an
	// hour another hit of the same counter with the same name counts nothing, and
	// is answered the same. A hit that was refused may be tried again.
	// (Repetitions by the connection itself count once in any case.)
	RequestID string
}

// Counted is what a hit did.
type Counted struct {
	ID        string
	Count     int64     // hits of the window, this one included
	Threshold int64     // how many fire it
	Fired     bool      // this hit crossed the threshold
	Ends      time.Time // the window's end; if it fired, the one that it would have had
}

// maxRequestID bounds a request id, in bytes.
const maxRequestID = 200

// Hit counts a hit. Concurrent calls share calls of Redis, but for hits with a
// RequestID, which have one each. Errors: ErrInvalid; ErrNoThreshold if no
// definition matches the id; ErrNotCounter; ErrOverflow; ErrItems; ErrPending; or
// what Redis answered. After an error nothing was counted, except that one of the
// connection may come after the hit was counted: with a RequestID the call may be
// made again then.
func (c *Client) Hit(ctx context.Context, hit Hit) (Counted, error) {
	if hit.RequestID != "" {
		results, err := c.count(ctx, []Hit{hit})
		if err != nil {
			return Counted{ID: hit.ID}, err
		}
		return results[0].Counted, results[0].Err
	}
	if err := c.checkHit(hit); err != nil {
		return Counted{ID: hit.ID}, err
	}
	asked := wireHit(hit)
	counted, err := c.hits.ask(ctx, c.space.Of(hit.ID), asked)
	if err != nil {
		return Counted{ID: hit.ID}, err
	}
	return countedOf(asked, counted)
}

// hitAll makes a call for the hits of several callers.
func hitAll(ctx context.Context, store *wire.Store, token int64, hits []wire.Hit) ([]wire.HitResult, error) {
	return store.Hit(ctx, wire.CallToken(token), hits)
}

func wireHit(hit Hit) wire.Hit {
	item := ""
	if hit.Item != "" {
		item = wire.JSONString(hit.Item)
	}
	return wire.Hit{ID: hit.ID, By: cmp.Or(hit.By, 1), Item: item}
}

func countedOf(hit wire.Hit, r wire.HitResult) (Counted, error) {
	return Counted{ID: hit.ID, Count: r.Count, Threshold: r.Threshold, Fired: r.Fired, Ends: r.Ends}, refusedHit(hit, r.Outcome)
}

// HitResult is what became of one of many hits.
type HitResult struct {
	Counted
	Err error // as of Hit
}

// HitMany counts many hits, a few hundred a round trip, and yields what became
// of each, in order; meanwhile it reads and counts the next ones. A hit with a
// RequestID has a round trip of its own. One that is refused does not stop the
// others. An error from Redis is yielded once, for the first hit that it befell,
// and ends the sequence: what was yielded before is counted; of that hit and those
// behind it that were read, some may be, if it was the reply that was lost. Whoever
// stops early may have hits counted that were not yielded: as many as were read.
func (c *Client) HitMany(ctx context.Context, hits iter.Seq[Hit]) iter.Seq2[int, HitResult] {
	return func(yield func(int, HitResult) bool) {
		var counting sync.WaitGroup
		defer counting.Wait()
		n := 0
		var last *chunkOfHits // that is being counted
		// next begins to count a chunk when the last one has been, and yields what
		// came of that one.
		next := func(chunk *chunkOfHits) bool {
			counting.Wait()
			counted := last
			if last = chunk; chunk != nil && (counted == nil || counted.err == nil) {
				counting.Go(func() { chunk.results, chunk.err = c.count(ctx, chunk.hits) })
			}
			if counted == nil {
				return true
			}
			for _, r := range counted.results {
				if !yield(n, r) {
					return false
				}
				n++
			}
			if counted.err != nil {
				yield(n, HitResult{Counted{ID: counted.hits[len(counted.results)].ID}, counted.err})
				return false
			}
			return true
		}
		most := wire.MaxHits * len(c.space.All())
		chunk := &chunkOfHits{most: most}
		for hit := range hits {
			if chunk.isFull(hit) {
				if !next(chunk) {
					return
				}
				chunk = &chunkOfHits{most: most}
			}
			chunk.add(hit)
		}
		if len(chunk.hits) > 0 && !next(chunk) {
			return
		}
		next(nil)
	}
}

// chunkOfHits is what is counted in one call, and then what came of it.
type chunkOfHits struct {
	most    int
	hits    []Hit
	bytes   int // of items
	results []HitResult
	err     error
}

// isFull says whether another hit belongs into the next chunk.
func (chunk *chunkOfHits) isFull(next Hit) bool {
	return len(chunk.hits) > 0 && (next.RequestID != "" || chunk.hits[0].RequestID != "" ||
		len(chunk.hits) == chunk.most || chunk.bytes+len(next.Item) > maxChunkBytes)
}

func (chunk *chunkOfHits) add(hit Hit) {
	if chunk.hits == nil {
		chunk.hits = make([]Hit, 0, chunk.most)
	}
	chunk.hits = append(chunk.hits, hit)
	chunk.bytes += len(hit.Item)
}

// count counts some hits. After an error the results are those of the hits before
// it.
func (c *Client) count(ctx context.Context, hits []Hit) ([]HitResult, error) {
	results := make([]HitResult, len(hits))
	checked := make([]wire.Hit, 0, len(hits))
	places := make([]int, 0, len(hits))
	for i, hit := range hits {
		results[i].ID = hit.ID
		if results[i].Err = c.checkHit(hit); results[i].Err != nil {
			continue
		}
		checked = append(checked, wireHit(hit))
		places = append(places, i)
	}
	if len(checked) == 0 {
		return results, nil
	}
	failed, err := wire.Group(checked, func(hit wire.Hit) *wire.Store { return c.space.Of(hit.ID) }, wire.MaxHits,
		func(store *wire.Store, share []wire.Hit, at []int) (int, error) {
			counted, err := store.Hit(ctx, tokenOf(hits[0]), share)
			for i, r := range counted {
				result := &results[places[at[i]]]
				result.Counted, result.Err = countedOf(share[i], r)
			}
			return len(counted), err
		})
	if err != nil {
		results = results[:places[failed]]
	}
	return results, err
}

// tokenOf is the token of a call that counts this hit, or also others if it has
// no request id. The length tells where the request id ends: that and the
// counter's may be any bytes.
func tokenOf(hit Hit) wire.Token {
	if hit.RequestID == "" {
		return wire.NewToken()
	}
	return wire.RequestToken(strconv.Itoa(len(hit.RequestID))+" "+hit.RequestID, hit.ID)
}

func (c *Client) checkHit(hit Hit) error {
	if err := c.checkID(hit.ID); err != nil {
		return err
	}
	switch {
	case wire.IsPattern(hit.ID):
		return fmt.Errorf("%w: %q is a pattern: hit one of the keys that it matches", ErrInvalid, hit.ID)
	case hit.By < 0:
		return fmt.Errorf("%w: a hit by %d: want at least 1", ErrInvalid, hit.By)
	case hit.By > wire.MaxCount:
		return fmt.Errorf("%w: a hit by %d: want at most %d", ErrInvalid, hit.By, int64(wire.MaxCount))
	case !utf8.ValidString(hit.Item):
		return fmt.Errorf("%w: the item is no UTF-8: encode it, as in base64", ErrInvalid)
	case len(hit.Item) > wire.MaxItemBytes:
		return fmt.Errorf("%w: the item has %d bytes, at most %d are allowed", ErrInvalid, len(hit.Item), wire.MaxItemBytes)
	case len(hit.RequestID) > maxRequestID:
		return fmt.Errorf("%w: the request id has %d bytes, at most %d are allowed", ErrInvalid, len(hit.RequestID), maxRequestID)
	}
	return nil
}

// refusedHit says as an error why a hit was refused, or nil.
func refusedHit(hit wire.Hit, outcome wire.Counted) error {
	switch outcome {
	case wire.CountedIt:
		return nil
	case wire.NoDefinition:
		return fmt.Errorf("%w: none counts under %q; define one, or check the id", ErrNoThreshold, hit.ID)
	case wire.NotInteger:
		return fmt.Errorf("%w: %q holds other data; delete it, or count under another id", ErrNotCounter, hit.ID)
	case wire.WouldOverflow:
		return fmt.Errorf("%w: %q by %d would be more than %d", ErrOverflow, hit.ID, hit.By, int64(wire.MaxCount))
	case wire.PendingJob:
		return fmt.Errorf("%w: %q; cancel it, or count under another id", ErrPending, hit.ID)
	case wire.TooManyItems:
		return fmt.Errorf("%w: the window of %q holds max_items already; raise it, or hit without the item", ErrItems, hit.ID)
	case wire.TooManyBytes:
		return fmt.Errorf("%w: the items of %q would be longer than max_bytes; raise it, or hit with a shorter item", ErrItems, hit.ID)
	}
	return fmt.Errorf("client: a hit of %q has the unknown outcome %q", hit.ID, outcome)
}
