package ways

import (
	"context"
	"errors"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func (r *rabbit) Work(ctx context.Context, ready func(), run func(n int)) error {
	channel, err := r.conn.Channel()
	if err != nil {
		return err
	}
	defer channel.Close() // RabbitMQ then has again what was delivered and not run
	const size, global = 0, false
	if err := channel.Qos(rabbitPrefetch, size, global); err != nil {
		return err
	}
	const autoAck, exclusive, noLocal, noWait = false, false, false, false
	deliveries, err := channel.Consume(rabbitQueue, "", autoAck, exclusive, noLocal, noWait, nil)
	if err != nil {
		return fmt.Errorf("consuming from RabbitMQ: %w", err)
	}
	ready()
	errs := make([]error, way.Workers)
	var working sync.WaitGroup
	for w := range errs {
		working.Go(func() { errs[w] = rabbitRuns(ctx, deliveries, run) })
	}
	working.Wait()
	return errors.Join(errs...)
}

// rabbitRuns runs what is delivered until ctx ends.
func rabbitRuns(ctx context.Context, deliveries <-chan amqp.Delivery, run func(n int)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case delivery, open := <-deliveries:
			if !open {
				return errors.New("RabbitMQ has ended the delivery")
			}
			n, err := way.N(delivery.MessageId)
			if err != nil {
				return err
			}
			run(n)
			const multiple = false
			if err := delivery.Ack(multiple); err != nil {
				return fmt.Errorf("settling a message: %w", err)
			}
		}
	}
}
