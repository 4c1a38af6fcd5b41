package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/keyfuse-io/keyfuse/client"
	"github.com/keyfuse-io/keyfuse/internal/embedded"
)

// connect stands for redis.NewClient with your Redis's address.
func connect() (*redis.Client, func()) {
	server, err := embedded.Start(embedded.Config{})
	if err != nil {
		log.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{
		Addr: "192.0.2.1:6379", Dialer: server.Dial,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return rdb, func() { _, _ = rdb.Close(), server.Close() }
}

func Example() {
	rdb, done := connect()
	defer done()
	ctx := context.Background()

	jobs, err := client.New(rdb, client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	// Unless it is paid within half an hour, the order is to be cancelled.
	_, err = jobs.Schedule(ctx, client.Spec{
		ID: "order:42", Task: "cancel-order", Payload: []byte(`{"order":42}`), In: 30 * time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}
	// It is paid.
	switch err := jobs.Cancel(ctx, "order:42"); {
	case errors.Is(err, client.ErrRunning):
		fmt.Println("too late: the order is being cancelled")
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println("the order stays")
	}
	// Output: the order stays
}

func ExampleClient_Schedule_ifExists() {
	rdb, done := connect()
	defer done()
	ctx := context.Background()
	jobs, err := client.New(rdb, client.Config{})
	if err != nil {
		log.Fatal(err)
	}

	reminder := client.Spec{ID: "reminder:ann", Task: "remind", In: time.Hour}
	for _, choice := range []client.IfExists{client.Fail, client.Keep, client.Replace, client.Fail} {
		reminder.IfExists = choice
		s, err := jobs.Schedule(ctx, reminder)
		fmt.Printf("%s: kept %t, replaced %t, exists %t\n", choice, s.Kept, s.Replaced, errors.Is(err, client.ErrExists))
	}
	// Output:
	// fail: kept false, replaced false, exists false
	// keep: kept true, replaced false, exists false
	// replace: kept false, replaced true, exists false
	// fail: kept false, replaced false, exists true
}

func ExampleClient_ScheduleMany() {
	rdb, done := connect()
	defer done()
	ctx := context.Background()
	jobs, err := client.New(rdb, client.Config{})
	if err != nil {
		log.Fatal(err)
	}

	// Specs are read while the ones before them are armed, so there may be
	// more of them than fit into memory.
	var orders iter.Seq[client.Spec] = func(yield func(client.Spec) bool) {
		for n := range 1000 {
			if !yield(client.Spec{ID: fmt.Sprintf("order:%d", n), Task: "cancel-order", In: 30 * time.Minute}) {
				return
			}
		}
	}
	armed := 0
	for n, result := range jobs.ScheduleMany(ctx, orders) {
		if result.Err != nil {
			log.Fatalf("order %d: %v", n, result.Err)
		}
		armed++
	}
	fmt.Println(armed, "orders")
	// Output: 1000 orders
}

func ExampleClient_List() {
	rdb, done := connect()
	defer done()
	ctx := context.Background()
	jobs, err := client.New(rdb, client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for n := range 5 {
		_, err := jobs.Schedule(ctx, client.Spec{ID: fmt.Sprintf("order:%d", n), Task: "cancel-order", In: time.Duration(n+1) * time.Hour})
		if err != nil {
			log.Fatal(err)
		}
	}

	for cursor := ""; ; {
		page, err := jobs.List(ctx, client.Filter{Prefix: "order:"}, cursor, 2)
		if err != nil {
			log.Fatal(err)
		}
		for _, job := range page.Jobs {
			fmt.Println(job.ID)
		}
		fmt.Println("--")
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	// Output:
	// order:0
	// order:1
	// --
	// order:2
	// order:3
	// --
	// order:4
	// --
}

func ExampleClient_All() {
	rdb, done := connect()
	defer done()
	ctx := context.Background()
	jobs, err := client.New(rdb, client.Config{})
	if err != nil {
		log.Fatal(err)
	}

	for job, err := range jobs.All(ctx, client.Filter{State: client.Dead}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s died of %s\n", job.ID, job.LastError)
	}
	// Output:
}

func ExampleClient_Hit() {
	rdb, done := connect()
	defer done()
	ctx := context.Background()
	jobs, err := client.New(rdb, client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	// One mail for three comments, or for what has come within ten minutes: a
	// counter for each user.
	_, err = jobs.DefineThreshold(ctx, client.Threshold{ID: "comments:*", Task: "mail-digest", Count: 3, Within: 10 * time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	for _, comment := range []string{"First!", "Nice.", "Thanks."} {
		counted, err := jobs.Hit(ctx, client.Hit{ID: "comments:ann", Item: comment})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d of %d, fired: %t\n", counted.Count, counted.Threshold, counted.Fired)
	}
	for job, err := range jobs.All(ctx, client.Filter{State: client.Retrying}) { // it waits for a daemon
		if err != nil {
			log.Fatal(err)
		}
		var digest struct{ Items []string }
		if err := json.Unmarshal(job.Payload, &digest); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s of %s: %q\n", job.Task, job.ID, digest.Items)
	}
	// Output:
	// 1 of 3, fired: false
	// 2 of 3, fired: false
	// 3 of 3, fired: true
	// mail-digest of comments:ann: ["First!" "Nice." "Thanks."]
}

func ExampleClient_HitMany() {
	rdb, done := connect()
	defer done()
	ctx := context.Background()
	jobs, err := client.New(rdb, client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = jobs.DefineThreshold(ctx, client.Threshold{ID: "signups", Task: "refresh-cache", Count: 100, Within: 10 * time.Minute})
	if err != nil {
		log.Fatal(err)
	}

	fired := 0
	for n, result := range jobs.HitMany(ctx, slices.Values(slices.Repeat([]client.Hit{{ID: "signups"}}, 250))) {
		if result.Err != nil {
			log.Fatalf("hit %d: %v", n, result.Err)
		}
		if result.Fired {
			fired++
		}
	}
	fmt.Println("fired", fired, "times")
	// Output: fired 2 times
}
