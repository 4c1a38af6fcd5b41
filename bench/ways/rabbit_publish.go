package ways

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

func (r *rabbit) Single(ctx context.Context, jobs way.Jobs, callers int) error {
	return jobs.Each(ctx, callers, func(ctx context.Context, job way.Job) error {
		return r.publishing.with(func(channel *amqp.Channel) error {
			confirm, err := r.publish(ctx, channel, job)
			if err != nil {
				return err
			}
			return confirmed(ctx, confirm)
		})
	})
}

func (r *rabbit) Bulk(ctx context.Context, jobs way.Jobs) error {
	return r.publishing.with(func(channel *amqp.Channel) error {
		return jobs.Chunks(rabbitBatch, func(chunk way.Jobs) (err error) {
			confirms := make([]*amqp.DeferredConfirmation, chunk.Count)
			for i := range confirms {
				confirms[i], err = r.publish(ctx, channel, chunk.Job(i))
				if err != nil {
					return err
				}
			}
			return confirmed(ctx, confirms...)
		})
	})
}

// publisher is a channel with confirms. It is for one goroutine at a time.
func (r *rabbit) publisher() (*amqp.Channel, error) {
	channel, err := r.conn.Channel()
	if err != nil {
		return nil, err
	}
	const noWait = false
	return channel, channel.Confirm(noWait)
}

func (r *rabbit) publish(ctx context.Context, channel *amqp.Channel, job way.Job) (*amqp.DeferredConfirmation, error) {
	message := amqp.Publishing{
		DeliveryMode: amqp.Persistent,
		MessageId:    way.ID(job.N),
		Type:         way.Task,
		Body:         []byte(way.Payload),
	}
	queue := rabbitQueue
	if delay := time.Until(job.Due); delay > 0 {
		var args amqp.Table
		queue, args, message.Expiration = r.route(delay)
		if err := r.declare(channel, queue, args); err != nil {
			return nil, err
		}
	}
	const defaultExchange, mandatory, immediate = "", false, false
	return channel.PublishWithDeferredConfirmWithContext(ctx, defaultExchange, queue, mandatory, immediate, message)
}

// confirmed waits until RabbitMQ has stored all messages.
func confirmed(ctx context.Context, confirms ...*amqp.DeferredConfirmation) error {
	for _, confirm := range confirms {
		acked, err := confirm.WaitContext(ctx)
		if err != nil {
			return err
		}
		if !acked {
			return errors.New("RabbitMQ did not take a message")
		}
	}
	return nil
}
