package ways

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestRabbitQueueIsNeverTooShort(t *testing.T) {
	for delay, want := range map[time.Duration]time.Duration{
		time.Nanosecond:               100 * time.Millisecond,
		100 * time.Millisecond:        100 * time.Millisecond,
		100*time.Millisecond + 1:      200 * time.Millisecond,
		62 * time.Second:              62 * time.Second,
		2 * time.Minute:               2 * time.Minute,
		2*time.Minute + 1:             3 * time.Minute,
		6*time.Hour - time.Nanosecond: 6 * time.Hour,
		6*time.Hour + time.Nanosecond: 6*time.Hour + time.Minute,
	} {
		_, args, _ := rabbitByQueue(delay)
		if got := args[amqp.QueueMessageTTLArg]; got != want.Milliseconds() {
			t.Errorf("after %s it would run after %v ms, want %d", delay, got, want.Milliseconds())
		}
	}
}
