package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/registry"
)

func newRedis(t *testing.T) (*miniredis.Miniredis, *redis.Client) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	return server, client
}

func TestStreamAddsAnEntryWithTheEnvelopesFields(t *testing.T) {
	_, client := newRedis(t)
	task := must(t)(NewStream(Stream{Redis: client, Key: "events"}))
	job := aJob()
	job.Count = 9
	if err := task.Handle(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	entries, err := client.XRange(t.Context(), "events", "-", "+").Result()
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	want := map[string]any{
		"id": "order:42", "task": "cancel-order", "run_id": "run-7", "attempt": "3", "count": "9",
		"due": "2026-12-01T09:00:00.005Z", "reason": "timer", "payload": `{"n":1}`,
	}
	if len(entries[0].Values) != len(want) {
		t.Errorf("fields %v, want %v", entries[0].Values, want)
	}
	for name, value := range want {
		if got := entries[0].Values[name]; got != value {
			t.Errorf("%s is %v, want %v", name, got, value)
		}
	}
}

// seenAdds hands commands on and keeps the last one.
type seenAdds struct {
	redis.StreamCmdable
	last *redis.XAddArgs
}

func (s *seenAdds) XAdd(ctx context.Context, args *redis.XAddArgs) *redis.StringCmd {
	s.last = args
	return s.StreamCmdable.XAdd(ctx, args)
}

func TestStreamIsTrimmedToAboutMaxLen(t *testing.T) {
	server, client := newRedis(t)
	adds := &seenAdds{StreamCmdable: client}
	task := must(t)(NewStream(Stream{Redis: adds, Key: "events", MaxLen: 5}))
	for range 20 {
		if err := task.Handle(t.Context(), aJob()); err != nil {
			t.Fatal(err)
		}
	}
	if !adds.last.Approx {
		t.Error("exact trimming costs Redis far more than trimming to about the length")
	}
	// miniredis trims exactly in either case.
	if entries, err := server.Stream("events"); err != nil || len(entries) != 5 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

func TestListAppendsJSONInOrder(t *testing.T) {
	server, client := newRedis(t)
	task := must(t)(NewList(List{Redis: client, Key: "work"}))
	for _, id := range hostileIDs {
		job := aJob()
		job.ID, job.Payload = id, []byte(id)
		if err := task.Handle(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	items, err := server.List("work")
	if err != nil || len(items) != len(hostileIDs) {
		t.Fatalf("%d items, %v", len(items), err)
	}
	for i, item := range items {
		var doc map[string]any
		if err := json.Unmarshal([]byte(item), &doc); err != nil {
			t.Fatal(err)
		}
		if id, payload := unpack(t, doc, "id"), unpack(t, doc, "payload"); id != hostileIDs[i] || payload != id {
			t.Errorf("item %d has id %q and payload %q", i, id, payload)
		}
	}
}

func TestPublishReachesSubscribers(t *testing.T) {
	server, client := newRedis(t)
	subscriber := server.NewSubscriber()
	defer subscriber.Close()
	subscriber.Subscribe("events")
	task := must(t)(NewPublish(Publish{Redis: client, Channel: "events"}))

	sent := make(chan error, 1)
	go func() { sent <- task.Handle(t.Context(), aJob()) }()
	message := <-subscriber.Messages()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	wantContains(t, message.Message, `"id":"order:42"`, `"payload":"{\"n\":1}"`)
}

func TestPublishWithoutSubscribersIsDone(t *testing.T) {
	_, client := newRedis(t)
	task := must(t)(NewPublish(Publish{Redis: client, Channel: "events"}))
	if err := task.Handle(t.Context(), aJob()); err != nil {
		t.Error(err)
	}
}

// redisTasks are the three tasks on one client.
func redisTasks(t *testing.T, client *redis.Client) map[string]registry.Handler {
	return map[string]registry.Handler{
		`add to stream "k"`:  must(t)(NewStream(Stream{Redis: client, Key: "k"})),
		`append to list "k"`: must(t)(NewList(List{Redis: client, Key: "k"})),
		`publish on "k"`:     must(t)(NewPublish(Publish{Redis: client, Channel: "k"})),
	}
}

func TestRedisErrorsAreRetriedAndSayWhatFailed(t *testing.T) {
	server, client := newRedis(t)
	server.SetError("OOM command not allowed when used memory > 'maxmemory'.")
	for what, task := range redisTasks(t, client) {
		err := task.Handle(t.Context(), aJob())
		if err == nil {
			t.Fatalf("%s: no error", what)
		}
		wantVerdict(t, err, registry.VerdictRetry)
		wantContains(t, err.Error(), what, "OOM")
	}
}

func TestRedisThatNeverAnswersEndsWithTheCauseOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var theirs []net.Conn
		client := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:1", MaxRetries: -1, ContextTimeoutEnabled: true,
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				ours, silent := net.Pipe()
				theirs = append(theirs, silent)
				return ours, nil
			},
		})
		for what, task := range redisTasks(t, client) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errShutdown)
			start := time.Now()
			err := task.Handle(ctx, aJob())
			cancel()
			if !errors.Is(err, errShutdown) {
				t.Errorf("%s: %v", what, err)
			}
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("%s took %s", what, took)
			}
		}
		_ = client.Close()
		for _, conn := range theirs {
			_ = conn.Close()
		}
	})
}

func TestRedisTasksRefuseWhatTheyCouldNotServe(t *testing.T) {
	_, client := newRedis(t)
	for i, c := range []struct {
		make func() (registry.Handler, error)
		says string
	}{
		{func() (registry.Handler, error) { return NewStream(Stream{Key: "k"}) }, "no Redis client"},
		{func() (registry.Handler, error) { return NewStream(Stream{Redis: client}) }, "key is empty"},
		{func() (registry.Handler, error) { return NewStream(Stream{Redis: client, Key: "k", MaxLen: -1}) }, "maxlen"},
		{func() (registry.Handler, error) { return NewStream(Stream{Redis: client, Key: "class:a"}) }, "belongs to Keyfuse"},
		{func() (registry.Handler, error) { return NewList(List{Key: "k"}) }, "no Redis client"},
		{func() (registry.Handler, error) { return NewList(List{Redis: client}) }, "key is empty"},
		{func() (registry.Handler, error) { return NewList(List{Redis: client, Key: "keyfuse:due:a"}) }, "belongs to Keyfuse"},
		{func() (registry.Handler, error) { return NewPublish(Publish{Channel: "c"}) }, "no Redis client"},
		{func() (registry.Handler, error) { return NewPublish(Publish{Redis: client}) }, "channel is empty"},
	} {
		t.Run(strconv.Itoa(i)+" "+c.says, func(t *testing.T) {
			handler, err := c.make()
			if err == nil || handler != nil {
				t.Fatalf("got %v, %v", handler, err)
			}
			wantContains(t, err.Error(), c.says)
		})
	}
}
