package registry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
)

func ExampleHandle() {
	type args struct{ Order int }
	r := registry.New()
	registry.Handle(r, "cancel-order", func(_ context.Context, job registry.Job, a args) error {
		fmt.Printf("order %d is cancelled, attempt %d\n", a.Order, job.Attempt)
		return nil
	}, registry.Options{Timeout: 10 * time.Second, Retries: registry.Retries{Max: 3}})

	task, _ := r.Lookup("cancel-order")
	_ = task.Handler.Handle(context.Background(), registry.Job{Payload: []byte(`{"order":42}`), Attempt: 1})
	// Output: order 42 is cancelled, attempt 1
}

func ExampleRegistry_Register() {
	r := registry.New()
	errBusy := errors.New("busy")
	r.Register("ship", registry.Func(func(context.Context, registry.Job) error {
		return registry.RetryAfter(time.Minute, errBusy) // instead of the task's own backoff
	}), registry.Options{Concurrency: 4, Delivery: registry.AtLeastOnce})

	task, _ := r.Lookup("ship")
	err := task.Handler.Handle(context.Background(), registry.Job{})
	_, delay := registry.Judge(err)
	fmt.Println(err, "again in", delay)
	// Output: busy again in 1m0s
}
