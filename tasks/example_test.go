package tasks_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/keyfuse-io/keyfuse/registry"
	"github.com/keyfuse-io/keyfuse/tasks"
)

func ExampleNewLog() {
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	task, err := tasks.NewLog(tasks.Log{Logger: logger})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = task.Handle(context.Background(), registry.Job{
		ID: "order:42", Task: "note", Payload: []byte("hello"), RunID: "r1", Attempt: 1,
		Due: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), Reason: registry.ReasonTimer,
	})
	// Output:
	// level=INFO msg=fired id=order:42 task=note run_id=r1 attempt=1 due=2026-12-01T09:00:00.000Z reason=timer payload=hello
}

func ExampleNewHTTP() {
	hook, err := tasks.NewHTTP(tasks.HTTP{
		URL:    "https://example.com/orders/cancel",
		Secret: os.Getenv("HOOK_SECRET"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	reg := registry.New()
	reg.Register("cancel-order", hook, registry.Options{Timeout: 10 * time.Second})
	fmt.Println(reg.Names())
	// Output:
	// [cancel-order]
}
